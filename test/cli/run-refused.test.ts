import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newRunner, openGate, recordsOf, runTo, signalled } from './run-support.ts'
import { spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
  await world.app.newBackend({ name: 'other.one', max_ttl: '1h' })
})
afterAll(() => world.close())

const revoked = { status: 'revoked', actions: ['credential.revoked', 'credential.issued'] }
const run = (argv: readonly string[]) => runTo(world, argv)

describe('what stands in the way of a start', () => {
  test.each([
    [
      'no command of that name',
      ['no-such-command'],
      127,
      'mayfly: no-such-command: there is no such command. Nothing was issued.\n',
    ],
    [
      'no file of that path',
      ['./nothing'],
      127,
      'mayfly: ./nothing: there is no such command. Nothing was issued.\n',
    ],
    ['a directory', ['/'], 126, 'mayfly: /: it cannot be executed. Nothing was issued.\n'],
    [
      'a file that is no program',
      ['/etc/passwd'],
      126,
      'mayfly: /etc/passwd: it cannot be executed. Nothing was issued.\n',
    ],
  ])('%s: nothing is issued', async (_, command, code, stderr) => {
    expect(await run(['--backend', 'demo', '--', ...command])).toMatchObject({
      code,
      stderr,
      stdout: '',
      records: [],
    })
  })

  test('an interpreter that is not there: what was issued is revoked', async () => {
    const script = join(world.home, 'no-interpreter')
    await writeFile(script, '#!/no/such/shell\n')
    await chmod(script, 0o755)
    const { code, stderr, records } = await run(['--backend', 'demo', '--', script])
    expect([code, records]).toMatchObject([127, [revoked]])
    expect(stderr).toMatch(/could not be started: the program that its first line names does not exist\./)
  })

  test('a second credential that is refused: the first is revoked, the command never runs', async () => {
    const argv = [
      '--backend',
      'demo',
      '--env',
      'X=postgres-that-is-not-there',
      '--',
      'sh',
      '-c',
      'echo it ran',
    ]
    const { code, stdout, stderr, records } = await run(argv)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^mayfly: .*\n$/)
    expect(records).toMatchObject([revoked])
  })

  test('an answer that comes too late: what was issued is asked for again, and revoked', async () => {
    const gate = await openGate(world.url)
    const { agent, env } = await newRunner(world)
    gate.on('POST', 'hold')
    const it = spawnCli(['run', '--backend', 'demo', '--', 'echo', 'it ran'], {
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

  test('no answer at all: that one may be left is told', async () => {
    const gate = await openGate(world.url)
    const { env } = await newRunner(world)
    gate.on('POST', 'drop')
    const argv = ['run', '--backend', 'demo', '--', 'echo', 'it ran']
    const end = await spawnCli(argv, { env: { ...env, MAYFLY_SERVER: gate.url } }).ended
    expect([end.code, end.stdout]).toEqual([3, ''])
    expect(end.stderr).toMatch(
      /^mayfly: No answer came for a credential of demo: if there is one, it ends by itself\.\nmayfly: Cannot reach .*\n$/,
    )
    await gate.close()
  })

  test('a scope that the agent has not', async () => {
    const { env, agent } = await newRunner(world, ['demo:mine'])
    const end = await spawnCli(['run', '--backend', 'demo', '--scope', 'theirs', 'true'], { env }).ended
    expect(end).toMatchObject({ code: 5, stdout: '', stderr: expect.stringMatching(/^mayfly: [^\n]*\n$/) })
    expect(await recordsOf(world, agent)).toEqual([])
  })

  test('a field that the credential has not: it is revoked', async () => {
    const { code, stderr, records } = await run(['--env', 'P=demo:password', 'true'])
    expect([code, records]).toMatchObject([2, [revoked]])
    expect(stderr).toBe(
      'mayfly: A credential of demo has no field password. It has: token, id, expires_at, created_at, ttl.\n',
    )
  })

  test.each([
    ['nothing named', ['true']],
    ['no command', ['--backend', 'demo']],
    ['a variable that steers programs', ['--env', 'PATH=demo', 'true']],
    ['a variable of ours', ['--env', 'MAYFLY_TOKEN=demo', 'true']],
    ['no name', ['--env', '=demo', 'true']],
    ['no backend', ['--env', 'A=', 'true']],
    ['a strange field', ['--env', 'A=demo:{{', 'true']],
    ['the same variable twice', ['--env', 'A=demo', '--file', 'A=demo', 'true']],
    ['a scope for nobody', ['--backend', 'demo', '--backend', 'other.one', '--scope', 'x:y', 'true']],
    ['a grace that is none', ['--backend', 'demo', '--grace', 'soon', 'true']],
    ['a file that is not there', ['--config', 'nowhere.yaml', 'true']],
    ['an option that there is not', ['--backend', 'demo', '--redcat', 'true']],
  ])('wrong usage: %s', async (_, argv) => {
    const { code, stdout, stderr, records } = await run(argv)
    expect([code, stdout, records]).toEqual([2, '', []])
    expect(stderr).toMatch(/^mayfly: [^\n]+\n$/)
  })

  test('no server, no login', async () => {
    const env = { ...world.bareEnv, MAYFLY_SERVER: 'http://127.0.0.1:1' }
    const bare = await spawnCli(['run', '--backend', 'demo', 'true'], { env }).ended
    expect(bare).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^mayfly: There is no login[^\n]*\n$/),
    })
    const dead = await spawnCli(['run', '--backend', 'demo', 'true'], {
      env: { ...env, MAYFLY_TOKEN: 'ckr_x' },
    }).ended
    expect(dead).toMatchObject({ code: 3, stderr: expect.stringMatching(/^mayfly: Cannot reach[^\n]*\n$/) })
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s while it is being issued: it is revoked, the command never runs',
    async (signal) => {
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
    },
  )
})

describe('at the end', () => {
  test('with --json one line says what became of each credential', async () => {
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
    })
  })

  test('with --json a command that there is not is told as JSON', async () => {
    const { code, stderr } = await run(['--json', '--backend', 'demo', 'no-such-command'])
    expect([code, JSON.parse(stderr)]).toEqual([127, { error: expect.objectContaining({ code: 'usage' }) }])
  })

  test.each([
    ['and a command that succeeded', 'true', 1],
    ['and one that failed', 'exit 6', 6],
  ])('what cannot be revoked is told on one line: %s', async (_, script, code) => {
    const gate = await openGate(world.url)
    gate.on('DELETE', 'drop')
    const { agent, env } = await newRunner(world)
    const end = await spawnCli(['run', '--backend', 'demo', '--', 'sh', '-c', script], {
      env: { ...env, MAYFLY_SERVER: gate.url },
    }).ended
    const [left] = await recordsOf(world, agent)
    expect(end).toMatchObject({ code, stdout: '' })
    expect(end.stderr).toMatch(
      new RegExp(
        `^mayfly: One credential could not be revoked: ${left?.id} of demo, which ends at \\S+Z\\. Cannot reach .* Try: mayfly revoke ${left?.id}\n$`,
      ),
    )
    await gate.close()
  })

  test('a server that comes back in time is asked again', async () => {
    const gate = await openGate(world.url)
    gate.on('DELETE', 'hold')
    const { agent, env } = await newRunner(world)
    const it = spawnCli(['run', '--backend', 'demo', 'true'], { env: { ...env, MAYFLY_SERVER: gate.url } })
    await gate.held('DELETE')
    gate.release('DELETE')
    expect(await it.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
    await gate.close()
  })
})
