import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gone, newRunner, recordsOf } from '../../cli/run-support.ts'
import { spawnCli } from '../../cli/support.ts'
import { eventually } from '../../support/app.ts'
import { heldIn } from './search.ts'
import { type ProxyWorld, startProxyWorld } from './world.ts'

let world: ProxyWorld
beforeAll(async () => {
  world = await startProxyWorld()
})
afterAll(() => world.close())

const SCOPES = ['gateway:*', 'secure:*', 'demo:*']
const GATEWAY = ['--backend', 'gateway']
const CALL = 'curl -sS -H "Authorization: Bearer $GATEWAY_TOKEN"'
const URL = '$MAYFLY_URL_GATEWAY_API'

async function runShell(script: string, flags: readonly string[] = GATEWAY, more = {}) {
  const { agent, env } = await newRunner(world, SCOPES)
  const argv = ['run', '--proxy', ...flags, '--', 'sh', '-c', script]
  const run = spawnCli(argv, { env: { ...env, ...more }, stdin: 'open' })
  return { agent, env, run }
}

/** Of a `mayfly run`. */
async function proxyOf(pid: number | undefined): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  for (const child of children.trim().split(' ')) {
    const line = await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')
    if (line.includes('run-proxy')) return Number(child)
  }
  throw new Error('there is no proxy')
}

const lastSecret = () => (world.plain.arrived.at(-1)?.authorization ?? '').slice('Bearer '.length)

describe('mayfly run --proxy', () => {
  test('gives a command placeholders, and the upstream the secret', async () => {
    const { agent, run } = await runShell(`echo "$GATEWAY_TOKEN"; ${CALL} "${URL}/v1/x?q=1"`, [
      ...GATEWAY,
      '--json',
    ])
    const end = await run.ended
    expect(end.code).toBe(0)
    const secret = lastSecret()
    expect(secret).toMatch(/^eyJ/)
    expect(end.stdout).not.toContain(secret)
    expect(end.stderr).not.toContain(secret)
    const [placeholder = '', answer = ''] = end.stdout.split('\n')
    expect(placeholder).toMatch(/^eyJ/)
    expect(JSON.parse(answer)).toMatchObject({
      url: '/v1/x?q=1',
      echo: `Bearer ${'*'.repeat(secret.length)}`,
    })
    expect(end.stderr).toMatch(
      /1 request with 1 credential, 0 refused, 1 secret masked; dead after [\d.]+ m?s/,
    )
    const report = JSON.parse(end.stderr.trim().split('\n').at(-1) ?? '')
    expect(report).toMatchObject({
      exit_code: 0,
      credentials: [{ backend: 'gateway', revoked: true }],
      proxy: { requests: 1, refused: 0, misused: 0, redacted: 1, lost: 0 },
    })
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
    const { body } = await world.app.admin('GET', `/v1/admin/runs/${report.run}/requests`)
    expect(body).toMatchObject([
      { method: 'GET', path: '/v1/x', status: 200, decision: 'injected', backend: 'gateway', redacted: 1 },
    ])
    expect(JSON.stringify(body)).not.toContain('q=1')
  })

  test('puts the secret into a connection that CONNECT has opened', async () => {
    const url = `https://127.0.0.1:${world.secure.port}/v1/y`
    const script = `curl -sS --noproxy "" -H "Authorization: Bearer $SECURE_TOKEN" ${url}`
    const { run } = await runShell(script, ['--backend', 'secure'])
    expect(await run.ended).toMatchObject({ code: 0 })
    expect(world.secure.arrived.at(-1)).toMatchObject({ url: '/v1/y' })
    expect(world.secure.arrived.at(-1)?.authorization).toMatch(/^Bearer eyJ/)
  })

  test('refuses what no rule allows, and counts it', async () => {
    const status = '-o /dev/null -w "%{http_code} "'
    const script = [`${URL}/v2/x`, `${URL}/v1/keys/1`, `${URL}/v1/x -X DELETE`]
      .map((call) => `${CALL} ${status} ${call.replace(URL, `"${URL}"`)}`)
      .join(';')
    const before = world.plain.arrived.length
    const { env, run } = await runShell(script)
    const end = await run.ended
    expect(end.stdout.trim()).toBe('403 403 403')
    expect(end.stderr).toContain('3 requests with 1 credential, 3 refused')
    expect(world.plain.arrived).toHaveLength(before)
    // The last line names the command that lists them.
    const [, command = ''] =
      / What was refused: mayfly (runs requests \S+ --refused)$/m.exec(end.stderr) ?? []
    const listed = await spawnCli([...command.split(' '), '--json'], { env }).ended
    expect(JSON.parse(listed.stdout)).toHaveLength(3)
  })

  test('ends everything at the first misused placeholder, with on_misuse end_run', async () => {
    const wrong = `curl -sS --noproxy "" -H "Authorization: Bearer $GATEWAY_TOKEN" https://127.0.0.1:${world.secure.port}/v1/z`
    const flags = [...GATEWAY, '--backend', 'secure', '--on-misuse', 'end_run']
    const { agent, run } = await runShell(`${wrong}; read -r line`, flags)
    const end = await run.ended
    expect(end.code).toBe(143)
    expect(end.stderr).toContain(
      '1 request with 2 credentials, 1 refused, 1 placeholder misused, 0 secrets masked',
    )
    expect(end.stderr).toContain('a placeholder of gateway was sent where it does not belong')
    for (const one of await recordsOf(world, agent)) expect(one.status).toBe('revoked')
    const { body } = await world.app.admin(
      'GET',
      `/v1/admin/audit?agent=${agent.name}&action=placeholder.misused`,
    )
    expect(body).toMatchObject([{ action: 'placeholder.misused', outcome: 'denied' }])
    const runs = (await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)).body
    expect(runs).toMatchObject([{ state: 'ended', reason: 'placeholder_misused', ended_by: agent.id }])
  })

  test('says before the command starts that a kind does not name its uses', async () => {
    const { run } = await runShell('echo started', ['--backend', 'demo'])
    const end = await run.ended
    expect(end).toMatchObject({ code: 1, stdout: '' })
    expect(end.stderr).toContain('the kind jwt of the backend demo does not say')
    expect(end.stderr).toContain('mayfly backend update demo --uses @file.json')
    // Nothing was started that a proxy could have done something for.
    expect(end.stderr).not.toContain('requests')
  })

  test('says what the server refused in words of the command, and of several backends, of which', async () => {
    const { run } = await runShell('true', [...GATEWAY, '--backend', 'secure', '--ttl', '5x'])
    const end = await run.ended
    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(/^mayfly: (?:gateway|secure): --ttl is not a duration: [^\n]+\n$/)
  })

  test('says that it takes the place of a proxy that the user has set', async () => {
    const { run } = await runShell('true', GATEWAY, {
      HTTPS_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: '127.0.0.1',
    })
    expect((await run.ended).stderr).toMatch(/^mayfly: HTTPS_PROXY is replaced\. [^\n]+$/m)
    const plain = await runShell('true')
    expect((await plain.run.ended).stderr).not.toContain('HTTPS_PROXY')
  })

  test('takes every login from the command, and warns of one that it could read', async () => {
    const { run } = await runShell('env', GATEWAY, {
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'abc',
      ACTIONS_ID_TOKEN_REQUEST_URL: 'http://x.invalid',
      MAYFLY_CLIENT_ID: '',
    })
    const { stdout, stderr } = await run.ended
    expect(stdout).not.toMatch(/MAYFLY_TOKEN|MAYFLY_CLIENT|ACTIONS_ID/)
    expect(stderr.match(/could read the login/g)).toHaveLength(1)
  })

  test.each([
    ['--keep-login', '--keep-login would let the command get the secrets'],
    ['--no-run', 'The credentials of a proxy end with a run.'],
  ])('refuses %s', async (flag, message) => {
    const end = await (await runShell('true', [...GATEWAY, flag])).run.ended
    expect(end.code).toBe(2)
    expect(end.stderr).toContain(message)
  })

  test('refuses settings of a proxy without one', async () => {
    const { env } = await newRunner(world, SCOPES)
    const end = await spawnCli(['run', ...GATEWAY, '--tunnel', 'a.example', '--', 'true'], { env }).ended
    expect(end).toMatchObject({ code: 2 })
    expect(end.stderr).toContain('Add --proxy.')
  })
})

/** An open stream of events; `end` prints how it ended. */
const STREAM = `${CALL} -N "${URL}/v1/stream" > /dev/null & stream=$!; echo ready $$; wait $stream; echo "cut $?"`

async function streaming(rest = 'read -r line') {
  const { agent, run } = await runShell(`${STREAM}; ${rest}`)
  const said = await run.said(/ready \d+/, 'stdout')
  await eventually(async () => expect(world.plain.streams()).toBe(1))
  return { agent, run, shell: Number(/ready (\d+)/.exec(said)?.[1]), proxy: await proxyOf(run.child.pid) }
}

describe('what is open ends', () => {
  test('at once with a revocation, after which the run gets no other', async () => {
    const again = `${CALL} -o /dev/null -w "%{http_code}" "${URL}/v1/x"`
    const { agent, run } = await streaming(`${again}; read -r line`)
    const [{ id = '' } = {}] = await recordsOf(world, agent)
    const before = performance.now()
    expect((await world.app.admin('DELETE', `/v1/admin/tokens/${id}`)).status).toBe(204)
    await run.said(/cut \d+\n403/, 'stdout')
    // Within a second, and as long as a busy machine takes for another curl. Unless it is told, the stream lasts as long as the run.
    expect(performance.now() - before).toBeLessThan(8_000)
    expect(world.plain.streams()).toBe(0)
    run.child.stdin?.end('\n')
    expect((await run.ended).stderr).toContain('this run gets no other of gateway')
  })

  test('when the run is ended', async () => {
    const { agent, run } = await streaming()
    const { body } = await world.app.admin('GET', `/v1/admin/runs?agent=${agent.name}`)
    await world.app.admin('DELETE', `/v1/admin/runs/${body[0].id}`)
    await run.said(/cut \d+|was ended/, 'stderr')
    expect(await run.ended).toMatchObject({ code: 143 })
    expect(world.plain.streams()).toBe(0)
  })

  test('when the proxy is killed: the command is told, and the run ends', async () => {
    const { agent, run, proxy } = await streaming()
    process.kill(proxy, 'SIGKILL')
    const end = await run.ended
    expect(end.code).toBe(143)
    expect(end.stderr).toContain('the proxy has ended by itself')
    expect(world.plain.streams()).toBe(0)
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  })

  test('when mayfly run is killed: the proxy ends the run at once', async () => {
    const { agent, run, proxy, shell } = await streaming()
    run.child.kill('SIGKILL')
    await gone(proxy)
    expect(world.plain.streams()).toBe(0)
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
    process.kill(shell, 'SIGKILL')
  })

  test('when the command is killed', async () => {
    const { agent, run, proxy, shell } = await streaming()
    process.kill(shell, 'SIGKILL')
    expect(await run.ended).toMatchObject({ code: 137 })
    await gone(proxy)
    await eventually(async () => expect(world.plain.streams()).toBe(0))
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'revoked' }])
  })
})

test('the secret is nowhere in the command, where the same search finds its placeholder', async () => {
  const directory = join(world.home, 'work')
  const script = `mkdir -p ${directory}; cd ${directory}; env > env; echo "$GATEWAY_TOKEN"; ${CALL} "${URL}/v1/x" > answer; echo done; exec cat`
  const { run } = await runShell(script)
  const said = await run.said('done', 'stdout')
  const placeholder = said.split('\n')[0] ?? ''
  const secret = lastSecret()
  const proxy = await proxyOf(run.child.pid)
  const children = (await readFile(`/proc/${run.child.pid}/task/${run.child.pid}/children`, 'utf8')).trim()
  const command =
    children
      .split(' ')
      .map(Number)
      .find((pid) => pid !== proxy) ?? 0
  const found = await heldIn([command, run.child.pid ?? 0], [secret, placeholder])
  expect(found).toEqual([0, expect.any(Number)])
  expect(found[1]).toBeGreaterThan(0)
  // The search can fail: the proxy has it.
  expect((await heldIn([proxy], [secret]))[0]).toBeGreaterThan(0)
  const files = await Promise.all(
    (await readdir(directory)).map((name) => readFile(join(directory, name), 'latin1')),
  )
  expect(files.join('')).toContain(placeholder)
  expect(files.join('')).not.toContain(secret)
  run.child.stdin?.end()
  const end = await run.ended
  expect(end.stdout + end.stderr).not.toContain(secret)
})
