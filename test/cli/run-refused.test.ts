import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newRunner, openGate, recordsOf, runTo, signalled } from './run-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
  await world.app.newBackend({ name: 'other.one', max_ttl: '1h' })
})
afterAll(() => world.close())

const revoked = { status: 'revoked', actions: ['credential.revoked', 'credential.issued'] }
const run = (argv: readonly string[]) => runTo(world, argv)

/** Without a process of its own, for command lines that never start a command. */
async function refuse(argv: readonly string[]) {
  const { agent, env } = await newRunner(world, ['demo:*', 'other.one:*'])
  return { ...(await runCli(['run', ...argv], { env })), records: await recordsOf(world, agent) }
}

describe('without issuing anything, refuses', () => {
  test.each([
    [
      'a command that does not exist',
      ['no-such-command'],
      127,
      'mayfly: no-such-command: command not found. No credential was issued.\n',
    ],
    [
      'a path that does not exist',
      ['./nothing'],
      127,
      'mayfly: ./nothing: command not found. No credential was issued.\n',
    ],
    ['a directory', ['/'], 126, 'mayfly: /: not executable. No credential was issued.\n'],
    [
      'a file that is not executable',
      ['/etc/passwd'],
      126,
      'mayfly: /etc/passwd: not executable. No credential was issued.\n',
    ],
  ])('%s', async (_, command, code, stderr) => {
    expect(await refuse(['--backend', 'demo', '--', ...command])).toEqual({
      code,
      stderr,
      stdout: '',
      records: [],
    })
  })

  test('a command that does not exist, as JSON with --json', async () => {
    const { code, stderr } = await refuse(['--json', '--backend', 'demo', 'no-such-command'])
    expect([code, JSON.parse(stderr)]).toEqual([127, { error: expect.objectContaining({ code: 'usage' }) }])
  })

  test('a scope that the agent lacks', async () => {
    const { env, agent } = await newRunner(world, ['demo:mine'])
    const end = await runCli(['run', '--backend', 'demo', '--scope', 'theirs', 'true'], { env })
    expect(end).toEqual({ code: 5, stdout: '', stderr: expect.stringMatching(/^mayfly: [^\n]*\n$/) })
    expect(await recordsOf(world, agent)).toEqual([])
  })

  test('to run without a login or without a server', async () => {
    const env = { ...world.bareEnv, MAYFLY_SERVER: 'http://127.0.0.1:1' }
    const argv = ['run', '--backend', 'demo', 'true']
    const bare = await runCli(argv, { env })
    expect(bare).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^mayfly: You are not logged in[^\n]*\n$/),
    })
    const dead = await runCli(argv, { env: { ...env, MAYFLY_TOKEN: 'ckr_x' } })
    expect(dead).toMatchObject({ code: 3, stderr: expect.stringMatching(/^mayfly: Cannot reach[^\n]*\n$/) })
  })

  test.each([
    ['no credential', ['true']],
    ['no command', ['--backend', 'demo']],
    ['a variable that steers programs', ['--env', 'PATH=demo', 'true']],
    ['a variable of mayfly', ['--env', 'MAYFLY_TOKEN=demo', 'true']],
    ['an empty variable name', ['--env', '=demo', 'true']],
    ['an empty backend', ['--env', 'A=', 'true']],
    ['a backend with a scope', ['--backend', 'demo:read', 'true']],
    ['an invalid field', ['--env', 'A=demo:{{', 'true']],
    ['the same variable twice', ['--env', 'A=demo', '--file', 'A=demo', 'true']],
    [
      'a scope that fits no backend',
      ['--backend', 'demo', '--backend', 'other.one', '--scope', 'x:y', 'true'],
    ],
    ['an invalid grace period', ['--backend', 'demo', '--grace', 'soon', 'true']],
    ['a project file that does not exist', ['--config', 'nowhere.yaml', 'true']],
    ['an unknown option', ['--backend', 'demo', '--redcat', 'true']],
  ])('wrong usage: %s', async (_, argv) => {
    const { code, stdout, stderr, records } = await refuse(argv)
    expect([code, stdout, records]).toEqual([2, '', []])
    expect(stderr).toMatch(/^mayfly: [^\n]+\n$/)
  })
})

describe('revokes what it obtained if the command cannot start:', () => {
  test('the interpreter does not exist', async () => {
    const script = join(world.home, 'no-interpreter')
    await writeFile(script, '#!/no/such/shell\n')
    await chmod(script, 0o755)
    const { code, stderr, records } = await refuse(['--backend', 'demo', '--', script])
    expect([code, records]).toMatchObject([127, [revoked]])
    expect(stderr).toMatch(/Cannot start .*: the interpreter named in its first line does not exist\./)
  })

  test('a second credential is refused', async () => {
    const argv = ['--backend', 'demo', '--env', 'X=postgres-that-is-not-there', '--']
    const { code, stdout, stderr, records } = await run([...argv, 'sh', '-c', 'echo it ran'])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^mayfly: .*\n$/)
    expect(records).toMatchObject([revoked])
  })

  test('the credential lacks a field', async () => {
    const { code, stderr, records } = await refuse(['--env', 'P=demo:password', 'true'])
    expect([code, records]).toMatchObject([2, [revoked]])
    expect(stderr).toBe(
      'mayfly: A credential of demo has no field "password". It has: token, id, expires_at, created_at, ttl.\n',
    )
  })

  test('the reply comes too late, so the request is repeated', async () => {
    const gate = await openGate(world.url)
    const { agent, env } = await newRunner(world)
    gate.on('POST', 'hold')
    const it = spawnCli(['run', '--no-run', '--backend', 'demo', '--', 'echo', 'it ran'], {
      env: { ...env, MAYFLY_SERVER: gate.url },
    })
    await gate.held('POST')
    expect(await recordsOf(world, agent)).toMatchObject([{ status: 'active' }])
    gate.on('POST', 'pass')
    it.child.kill('SIGTERM')
    await signalled(it.child.pid ?? 0)
    it.child.kill('SIGTERM')
    expect(await it.ended).toMatchObject({ code: 143, stdout: '', stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([
      { status: 'revoked', actions: ['credential.revoked', 'credential.repeated', 'credential.issued'] },
    ])
    await gate.close()
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s arrives while issuing', async (signal) => {
    const gate = await openGate(world.url)
    gate.on('POST', 'hold')
    const { agent, env } = await newRunner(world)
    const it = spawnCli(['run', '--backend', 'demo', 'echo', 'it ran'], {
      env: { ...env, MAYFLY_SERVER: gate.url },
    })
    await gate.held('POST')
    it.child.kill(signal)
    await signalled(it.child.pid ?? 0)
    gate.release('POST')
    expect(await it.ended).toMatchObject({ stdout: '', stderr: '', signal: null })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
    await gate.close()
  })
})

describe('at the end', () => {
  test('--json reports on one line what became of each credential', async () => {
    const { code, stdout, stderr, records } = await run([
      '--json',
      '--backend',
      'demo',
      'sh',
      '-c',
      'echo out; exit 3',
    ])
    expect([code, stdout]).toEqual([3, 'out\n'])
    expect(JSON.parse(stderr)).toEqual({
      credentials: [{ id: records[0]?.id, backend: 'demo', expires_at: expect.any(String), revoked: true }],
      exit_code: 3,
      run: expect.stringMatching(/^run_/),
    })
  })

  test('a revocation that takes long is waited for', async () => {
    const gate = await openGate(world.url)
    gate.on('DELETE run', 'hold')
    const { agent, env } = await newRunner(world)
    const it = spawnCli(['run', '--backend', 'demo', 'true'], { env: { ...env, MAYFLY_SERVER: gate.url } })
    await gate.held('DELETE run')
    gate.release('DELETE run')
    expect(await it.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
    await gate.close()
  })
})

// Each waits for all the retries of a run, so they wait together.
describe.concurrent('a server that stays away', () => {
  test.each([
    ['without a run', ['--no-run'], 'expires on its own'],
    ['with a run', [], 'ends with run_\\w{26}, which misses its heartbeats now'],
  ])('before issuing, %s: the command reports that a credential may be left', async (_, options, how) => {
    const gate = await openGate(world.url)
    const { env } = await newRunner(world)
    gate.on('POST', 'drop')
    gate.on('DELETE run', 'drop')
    const argv = ['run', ...options, '--backend', 'demo', '--', 'echo', 'it ran']
    const end = await spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url } }).ended
    expect([end.code, end.stdout]).toEqual([3, ''])
    expect(end.stderr).toMatch(
      new RegExp(
        `^mayfly: No reply to a request for a credential of demo: if the server issued one, it ${how}\\.\nmayfly: Cannot reach .*\n$`,
      ),
    )
    await gate.close()
  })

  test('before the run has begun: nothing was issued', async () => {
    const gate = await openGate(world.url)
    const { agent, env } = await newRunner(world)
    gate.on('POST run', 'drop')
    const argv = ['run', '--backend', 'demo', '--', 'echo', 'it ran']
    const end = await spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url } }).ended
    expect(end).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(/^mayfly: Cannot reach .*\n$/),
    })
    expect(await recordsOf(world, agent)).toEqual([])
    await gate.close()
  })

  test.each([
    ['succeeded', 'true', 1],
    ['failed', 'exit 6', 6],
  ])(
    'at the end: a command that %s, and one line about what could not be revoked',
    async (_, script, code) => {
      const gate = await openGate(world.url)
      gate.on('DELETE', 'drop')
      gate.on('DELETE run', 'drop')
      const { agent, env } = await newRunner(world)
      const end = await spawnCli(['run', '--backend', 'demo', '--', 'sh', '-c', script], {
        env: { ...env, MAYFLY_SERVER: gate.url },
      }).ended
      const [left] = await recordsOf(world, agent)
      expect(end).toMatchObject({ code, stdout: '' })
      expect(end.stderr).toMatch(
        new RegExp(
          `^mayfly: One credential could not be revoked: ${left?.id} of demo, which expires at \\S+Z\\. Cannot reach .* The server ends it when it misses the heartbeats of (run_\\w{26})\\. Sooner: mayfly runs end \\1\n$`,
        ),
      )
      await gate.close()
    },
  )
})
