import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newRunner, recordsOf } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { type ProxyWorld, startProxyWorld } from './world.ts'

let world: ProxyWorld
beforeAll(async () => {
  world = await startProxyWorld()
})
afterAll(() => world.close())

const SCOPES = ['gateway:*', 'secure:*']

async function start(argv: readonly string[]) {
  const { agent, env } = await newRunner(world, SCOPES)
  const proxy = spawnCli(['proxy', ...argv], { env, cwd: world.home })
  return { agent, proxy }
}

/** A program that takes its environment from the file alone. */
function program(file: string, script: string) {
  const line = `set -a; . ${file}; set +a; ${script}`
  return spawnCli([], { env: { PATH: process.env['PATH'] }, cwd: world.home, by: ['sh', '-c', line] }).ended
}

const CALL = 'curl -sS -H "Authorization: Bearer $GATEWAY_TOKEN"'

test('serves programs by an environment file until SIGTERM, and ends its run', async () => {
  const file = join(world.home, 'proxy.env')
  const { agent, proxy } = await start(['--backend', 'gateway', '--write-env', file, '--json'])
  await proxy.said('ready')
  const [mode, beside] = await Promise.all([stat(file), stat(`${file}.d`)])
  expect([mode.mode & 0o027, beside.mode & 0o027]).toEqual([0, 0])
  const end = await program(file, `${CALL} "$MAYFLY_URL_GATEWAY_API/v1/x"`)
  expect(end.stdout).toContain('"url":"/v1/x"')
  const secret = (world.plain.arrived.at(-1)?.authorization ?? '').slice(7)
  expect(secret).toMatch(/^eyJ/)
  proxy.child.kill('SIGTERM')
  const { code, stdout, stderr } = await proxy.ended
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ env_file: file, sites: [{ name: 'gateway', use: 'api' }] })
  expect(stdout + stderr).not.toContain(secret)
  await expect(stat(file)).rejects.toThrow('ENOENT')
  await expect(stat(`${file}.d`)).rejects.toThrow('ENOENT')
  expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
})

test('exits with 5 when somebody ends its run, so that a service does not begin another', async () => {
  const config = join(world.home, 'proxy.yaml')
  await writeFile(config, 'credentials:\n  gateway:\n    ttl: 5m\npurpose: coder\non_misuse: end_run\n')
  const { agent, proxy } = await start(['--config', config])
  await proxy.said('ready')
  const { body } = await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)
  expect(body).toMatchObject([{ purpose: 'coder', state: 'running' }])
  await world.app.admin('DELETE', `/v1/admin/runs/${body[0].id}`)
  expect(await proxy.ended).toMatchObject({ code: 5 })
})

test.each([
  ['0.0.0.0', '1000', undefined],
  ['[::]:0', undefined, undefined],
  ['127.0.0.1', 'any', '::ffff:10.0.0.1'],
])('at %s with the users %s, whose a connection is cannot be told', async (listen, uids, flag) => {
  const config = join(world.home, 'open.yaml')
  const users = uids === undefined ? '' : `uids: ${uids === 'any' ? uids : `[${uids}]`}\n`
  await writeFile(config, `listen: "${listen}"\n${users}credentials:\n  gateway:\n    ttl: 5m\n`)
  const flags = flag === undefined ? [] : ['--listen', flag, '--uid', '1000']
  const end = await (await start(['--config', config, ...flags])).proxy.ended
  expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be told') })
})

test('its configuration and its flags are judged together', async () => {
  const config = join(world.home, 'half.yaml')
  await writeFile(config, 'listen: 0.0.0.0\ncredentials:\n  gateway:\n    ttl: 5m\n')
  const { proxy } = await start(['--config', config, '--uid', 'any', '--json'])
  await proxy.said('ready')
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
})

test('says all faults of its configuration together', async () => {
  const config = join(world.home, 'broken.yaml')
  const lines = [
    'others: allow',
    'tunnel: [a b]',
    'uids: [-1]',
    'listen: somewhere',
    'idle_timeout: 1',
    'sniff: 1',
  ]
  await writeFile(config, `${lines.join('\n')}\ncredentials:\n  gateway:\n    ttl: soon\n`)
  const end = await (await start(['--config', config])).proxy.ended
  expect(end.code).toBe(2)
  for (const word of [
    'others must be',
    'tunnel must be',
    'idle_timeout must be',
    'ttl must be',
    'and 2 more',
  ])
    expect(end.stderr).toContain(word)
})

test('removes no file that no proxy has made, and those of a proxy that was killed', async () => {
  const file = join(world.home, 'own.env')
  const argv = ['--backend', 'gateway', '--write-env', file]
  await writeFile(file, 'MINE=1\n')
  const own = await (await start(argv)).proxy.ended
  expect(own).toMatchObject({ code: 2, stderr: expect.stringContaining('no proxy has written it') })
  expect(await readFile(file, 'utf8')).toBe('MINE=1\n')
  await rm(file)
  await mkdir(`${file}.d`)
  await writeFile(join(`${file}.d`, 'mine'), '')
  const beside = await (await start(argv)).proxy.ended
  expect(beside).toMatchObject({ code: 2, stderr: expect.stringContaining('files that no proxy has made') })
  await rm(join(`${file}.d`, 'mine'))
  const { proxy: killed } = await start(argv)
  await killed.said('ready')
  killed.child.kill('SIGKILL')
  await killed.ended
  expect(await readFile(file, 'utf8')).toContain('GATEWAY_TOKEN=')
  const { proxy } = await start(argv)
  await proxy.said('ready')
  proxy.child.kill('SIGTERM')
  expect((await proxy.ended).code).toBe(0)
})

test('a port that is taken is named, with what to do', async () => {
  const listen = `127.0.0.1:${world.plain.port}`
  const end = await (await start(['--backend', 'gateway', '--listen', listen])).proxy.ended
  expect(end.code).toBe(1)
  expect(end.stderr).toContain(
    `The proxy cannot listen on ${listen}: another program listens there. Choose another --listen`,
  )
})

test('refuses an environment file whose directory is not its own', async () => {
  const file = join(world.home, 'taken.env')
  await writeFile(`${file}.d`, 'of somebody else')
  const end = await (await start(['--backend', 'gateway', '--write-env', file])).proxy.ended
  expect(end.code).toBe(2)
  expect(await readFile(`${file}.d`, 'utf8')).toBe('of somebody else')
})
