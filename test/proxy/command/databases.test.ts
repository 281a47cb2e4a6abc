import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { spawnCli } from '../../cli/support.ts'
import { NOBODY } from '../../support/listener-as.ts'
import { run as program } from '../../support/run-program.ts'
import { openProcessWorld, type ProcessWorld, proxyOf } from './process-world.ts'
import { findIn, heldIn } from './search.ts'

let world: ProcessWorld
beforeAll(async () => {
  world = await openProcessWorld()
})
afterAll(() => world?.close())

async function run(flags: readonly string[], script: string) {
  const { name, env } = await world.newRunner()
  const command = spawnCli(['run', '--proxy', ...flags, '--', 'sh', '-c', script], { env, stdin: 'open' })
  return { name, command }
}

test('psql and redis-cli need nothing but their environment', async () => {
  const script =
    'psql -XAtqc "SELECT current_user, 6 * 7"; redis-cli -u "$REDIS_URL" SET shop:1 x 2>/dev/null; redis-cli -u "$REDIS_URL" GET shop:1 2>/dev/null'
  const { name, command } = await run(['--backend', 'orders', '--backend', 'cache'], script)
  const end = await command.ended
  expect(end).toMatchObject({ code: 0 })
  expect(end.stdout).toMatch(/^mf_[0-9a-z]+\|42\nOK\nx\n$/)
  expect(end.stderr).toContain('3 requests with 2 credentials, 0 refused')
  const [shown] = await world.call<{ id: string }[]>('GET', `/v1/admin/runs?agent=${name}`)
  const lines = await world.call<{ protocol: string; decision: string }[]>(
    'GET',
    `/v1/admin/runs/${shown?.id}/requests`,
  )
  expect(lines.map(({ protocol, decision }) => `${protocol} ${decision}`).sort()).toEqual([
    'postgres injected',
    'redis injected',
    'redis injected',
  ])
})

test('the password of a database is nowhere in the command, its files and what is said, where the placeholder is', async () => {
  const directory = join(world.home, 'work')
  const script = `mkdir -p ${directory}; cd ${directory}; env > env; psql -XAtqc "SELECT 1" > answer; echo "$PGPASSWORD"; echo done; psql -XAtqc "SELECT pg_sleep(600)" & exec cat`
  const { command } = await run(['--backend', 'orders'], script)
  const placeholder = (await command.said('done', 'stdout')).split('\n')[0] ?? ''
  const proxy = await proxyOf(command.child.pid)
  const secret = await passwordIn(proxy, placeholder)
  const children = await readFile(`/proc/${command.child.pid}/task/${command.child.pid}/children`, 'utf8')
  const child = Number(
    children
      .trim()
      .split(' ')
      .find((pid) => Number(pid) !== proxy),
  )
  const found = await heldIn([child, command.child.pid ?? 0], [secret, placeholder])
  expect(found[0]).toBe(0)
  expect(found[1]).toBeGreaterThan(0)
  const names = await readdir(directory)
  const files = await Promise.all(names.map((name) => readFile(join(directory, name), 'latin1')))
  expect(files.join('')).toContain(placeholder)
  command.child.stdin?.end()
  const { stdout, stderr } = await command.ended
  for (const text of [...files, stdout, stderr, world.world.server().logged()])
    expect(text).not.toContain(secret)
})

/** What the server gave for the role: the proxy alone has it, in a reply of JSON. */
async function passwordIn(pid: number, placeholder: string): Promise<string> {
  const all = await findIn(pid, /"password":"([^"\\]{16,200})"/g)
  const secrets = [...new Set(all)].filter((one) => one !== placeholder)
  const [secret = ''] = secrets
  expect(secrets).toHaveLength(1)
  return secret
}

test.runIf(process.getuid?.() === 0)('a standing proxy serves another user by the port alone', async () => {
  const { env } = await world.newRunner()
  const argv = ['proxy', '--backend', 'orders', '--uid', `${NOBODY}`, '--json']
  const proxy = spawnCli(argv, { env })
  await proxy.said('ready')
  const { variables } = JSON.parse(await proxy.said('\n', 'stdout'))
  expect(variables.PGHOST).toBe('127.0.0.1')
  const as = (uid: number, more = {}) =>
    program(['setpriv', `--reuid=${uid}`, '--clear-groups', 'psql', '-XAtqc', 'SELECT 1'], {
      ...variables,
      PATH: process.env['PATH'],
      ...more,
    })
  expect(await as(NOBODY)).toMatchObject({ code: 0, stdout: '1\n' })
  expect((await as(NOBODY, { PGPASSWORD: 'wrong' })).code).toBe(2)
  expect((await as(0)).code).toBe(2)
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
})

test('uids any, where the network namespace is the border', async () => {
  const { env } = await world.newRunner()
  const proxy = spawnCli(['proxy', '--backend', 'orders', '--uid', 'any', '--json'], { env })
  await proxy.said('ready')
  const { variables } = JSON.parse(await proxy.said('\n', 'stdout'))
  const end = await program(['psql', '-XAtqc', 'SELECT 1'], { ...variables, PATH: process.env['PATH'] })
  expect(end).toMatchObject({ code: 0, stdout: '1\n' })
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
})

test('serves the run of somebody else, ends with it, and does not begin for one that has ended', async () => {
  const { name, env } = await world.newRunner()
  const holder = spawnCli(['run', '--backend', 'orders', '--', 'sh', '-c', 'echo up; read -r line'], {
    env,
    stdin: 'open',
  })
  await holder.said('up', 'stdout')
  const [shown] = await world.call<{ id: string }[]>('GET', `/v1/admin/runs?agent=${name}`)
  const argv = ['proxy', '--backend', 'orders', '--run', shown?.id ?? '', '--json']
  const proxy = spawnCli(argv, { env })
  await proxy.said('ready')
  const said = JSON.parse(await proxy.said('\n', 'stdout'))
  expect(said.run).toBe(shown?.id)
  const end = await program(['psql', '-XAtqc', 'SELECT 1'], { ...said.variables, PATH: process.env['PATH'] })
  expect(end).toMatchObject({ code: 0, stdout: '1\n' })
  holder.child.stdin?.end('\n')
  expect(await holder.ended).toMatchObject({ code: 0 })
  expect((await proxy.ended).code).toBe(5)
  expect((await spawnCli(argv, { env }).ended).code).toBe(5)
})
