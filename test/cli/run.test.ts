import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gone, newRunner, type RunMore, recordsOf, runTo } from './run-support.ts'
import { expectNoSecret, runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
  await world.app.newBackend({ name: 'other.one', max_ttl: '1h' })
})
afterAll(() => world.close())

const revoked = { status: 'revoked', actions: ['credential.revoked', 'credential.issued'] }
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/

const run = (argv: readonly string[], more: RunMore = {}) => runTo(world, argv, more)

/** A directory of its own with a .mayfly.yaml, which is allowed. */
async function project(name: string, yaml: string): Promise<string> {
  const cwd = join(world.home, name)
  await mkdir(cwd, { recursive: true })
  await writeFile(join(cwd, '.mayfly.yaml'), yaml)
  expect(await runCli(['allow', '--yes'], { cwd, env: world.bareEnv })).toMatchObject({ code: 0 })
  return cwd
}

describe('the command receives', () => {
  test('every field of a credential, in variables named as by `get -o env`', async () => {
    const { stdout, code, records } = await run([
      '--backend',
      'other.one',
      '--',
      'sh',
      '-c',
      'echo $OTHER_ONE_TOKEN',
    ])
    expect([code, records]).toMatchObject([0, [{ backend: 'other.one', ...revoked }]])
    expect(stdout.trim()).toMatch(JWT)
  })

  test('single fields of several backends, in the named variables', async () => {
    const argv = ['--env', 'ONE=demo', '--env', 'UNTIL=demo:expires_at', '--env', 'TWO=other.one:token']
    const { stdout, records } = await run([...argv, 'sh', '-c', 'echo $ONE $TWO $UNTIL'])
    const [one, two, until] = stdout.trim().split(' ')
    expect([one, two]).toEqual([expect.stringMatching(JWT), expect.stringMatching(JWT)])
    expect(Date.parse(until ?? '')).toBeGreaterThan(Date.now())
    expect(records.map(({ backend }) => backend).sort()).toEqual(['demo', 'other.one'])
  })

  test('a private file in memory, removed afterwards', async () => {
    const script =
      'stat -L -c "%a %F" "$TOKEN_FILE" "$(dirname "$(dirname "$TOKEN_FILE")")"; stat -f -c %T "$TOKEN_FILE"; echo "$TOKEN_FILE"'
    const { stdout } = await run(['--file', 'TOKEN_FILE=demo', '--', 'sh', '-c', script])
    const lines = stdout.trim().split('\n')
    expect(lines.slice(0, 3)).toEqual(['600 regular file', '700 directory', 'tmpfs'])
    const directory = (lines[3] ?? '').replace(/\/0\/TOKEN_FILE$/, '')
    await expect(readdir(directory)).rejects.toThrow('ENOENT')
  })

  test('no login, unless --keep-login is given', async () => {
    const script = 'printenv MAYFLY_TOKEN || echo none'
    expect((await run(['--backend', 'demo', '--', 'sh', '-c', script])).stdout).toBe('none\n')
    const kept = await run(['--backend', 'demo', '--keep-login', '--', 'sh', '-c', script])
    expect(kept.stdout).toMatch(/^ckr_/)
  })

  test('its arguments, standard input and name unchanged, with or without --', async () => {
    const argv = ['sh', '-c', 'echo "$0" "$@"; cat', 'called', '--ttl', '-x', '--', 'a b']
    for (const dashes of [[], ['--']]) {
      const { stdout, code } = await run(['--backend', 'demo', ...dashes, ...argv], { stdin: 'typed' })
      expect([code, stdout]).toEqual([0, 'called --ttl -x -- a b\ntyped'])
    }
  })

  test('credentials with the requested ttl and scopes', async () => {
    const argv = [
      '--backend',
      'demo',
      '--env',
      'T=other.one',
      '--ttl',
      '90s',
      '--scope',
      'demo:a:read',
      '--scope',
      'other.one:b',
    ]
    const { agent } = await run([...argv, 'true'])
    const { body } = await world.app.admin(
      'GET',
      `/v1/admin/audit?agent=${agent.name}&action=credential.issued`,
    )
    const seen = body.map(({ backend, ttl, scopes }: Record<string, unknown>) => ({ backend, ttl, scopes }))
    expect(seen).toHaveLength(2)
    expect(seen).toContainEqual({ backend: 'demo', ttl: '1m30s', scopes: ['demo:a:read'] })
    expect(seen).toContainEqual({ backend: 'other.one', ttl: '1m30s', scopes: ['other.one:b'] })
  })

  test('many credentials at once, without any output', async () => {
    const names = Array.from({ length: 14 }, (_, index) => `  c${index}: { backend: demo }`)
    const cwd = await project('many', `credentials:\n${names.join('\n')}\n`)
    const { code, stderr, records } = await run(
      ['--', 'sh', '-c', 'test -n "$C0_TOKEN" && test -n "$C13_TOKEN"'],
      { cwd },
    )
    expect([code, stderr, records.length]).toEqual([0, '', 14])
    expect(records.every(({ status }) => status === 'revoked')).toBe(true)
  })
})

describe('.mayfly.yaml', () => {
  const YAML = `credentials:
  reports:
    backend: demo
    ttl: 5m
    scopes: [reports:read]
    env: { REPORTS: token, HEADER: "Bearer {{token}}" }
    files:
      KEY_FILE: { name: key.txt, content: "{{id}} {{token}}" }
`

  test('in the directory names the credentials', async () => {
    const cwd = await project('good', YAML)
    const script = 'test "$HEADER" = "Bearer $REPORTS" && cat "$KEY_FILE" && basename "$KEY_FILE"'
    const { code, stdout, records } = await run(['sh', '-c', script], { cwd })
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^cred_\w+ eyJ.*key\.txt\n$/s)])
    expect(records).toMatchObject([{ backend: 'demo', ...revoked }])
  })

  test('is ignored with flags or --no-config, and used with --config', async () => {
    const cwd = await project('good', YAML)
    const script = 'printenv REPORTS || echo none'
    expect((await run(['--env', 'A=demo', 'sh', '-c', script], { cwd })).stdout).toBe('none\n')
    const both = await run(
      ['--config', '.mayfly.yaml', '--env', 'A=demo', 'sh', '-c', 'echo "$REPORTS $A"'],
      {
        cwd,
      },
    )
    expect(both.stdout).toMatch(/^eyJ\S+ eyJ\S+\n$/)
    const none = await run(['--no-config', 'true'], { cwd })
    expect(none).toMatchObject({
      code: 2,
      records: [],
      stderr: expect.stringContaining('No credentials requested.'),
    })
  })

  test('with a mistake is refused with the line', async () => {
    const yaml = 'credentials:\n  demo:\n    ttls: 5m\n    env: { LD_PRELOAD: token }\n'
    await writeFile(join(world.home, 'bad.yaml'), yaml)
    const argv = ['--trust-project', '--config', 'bad.yaml', 'true']
    const { code, stderr, records } = await run(argv)
    expect([code, records]).toEqual([2, []])
    expect(stderr).toBe(
      'mayfly: bad.yaml:3:5: "ttls" is not a field (did you mean "ttl"?); bad.yaml:4:12: "LD_PRELOAD" is a variable that mayfly does not set. Correct the file, choose another with --config, or ignore it with --no-config.\n',
    )
  })
})

describe.concurrent('--redact', () => {
  test('redacts secrets in both streams, in every form', async () => {
    const script = `
      const token = process.env.T
      process.stdout.write('plain ' + token.slice(0, 40))
      setImmediate(() => {
        process.stdout.write(token.slice(40) + '\\nbasic ' + Buffer.from('user:' + token).toString('base64') + '\\n')
        process.stderr.write('json ' + JSON.stringify({ token }) + '\\n')
      })`
    const { code, stdout, stderr } = await run([
      '--env',
      'T=demo',
      '--redact',
      '--',
      process.execPath,
      '-e',
      script,
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^plain \[redacted\]\nbasic dXNlcj.{0,3}\[redacted\].{0,4}\n$/)
    expect(stderr).toBe('json {"token":"[redacted]"}\n')
  })

  test('does not wait for a process that the child leaves running', async () => {
    const { code, stdout, records } = await run([
      '--backend',
      'demo',
      '--redact',
      '--',
      'sh',
      '-c',
      'tail -f /dev/null & echo $!',
    ])
    process.kill(Number(stdout.trim()), 'SIGKILL')
    expect([code, records]).toMatchObject([0, [revoked]])
  })

  test('passes on a large output completely and in order', async () => {
    const { stdout } = await run(['--backend', 'demo', '--redact', '--', 'sh', '-c', 'seq 1 200000'])
    const lines = stdout.trim().split('\n')
    expect([lines.length, lines[0], lines.at(-1)]).toEqual([200_000, '1', '200000'])
  })

  test('without it, the output is unchanged', async () => {
    const { stdout } = await run(['--env', 'T=demo', '--', 'sh', '-c', 'echo $T'])
    expect(stdout.trim()).toMatch(JWT)
    expect(() => expectNoSecret(stdout, stdout.trim())).toThrow()
  })

  test('cuts off a process that keeps writing after the command', async () => {
    const script = 'yes & echo $! >&2'
    const { stderr, code, stdout, records } = await run(['--backend', 'demo', '--redact', 'sh', '-c', script])
    expect([code, records]).toMatchObject([0, [revoked]])
    expect(stdout.length).toBeLessThan(32 * 1024 * 1024)
    // The pipe that it wrote to is closed.
    await gone(Number(stderr))
  })

  test('ends the command when the reader of the output goes away', async () => {
    const { agent, env } = await newRunner(world)
    const argv = ['run', '--backend', 'demo', '--redact', '--', 'yes']
    const it = spawnCli(argv, { env })
    await it.said('y', 'stdout')
    it.child.stdout?.destroy()
    // By SIGPIPE, or by an error that it tells itself.
    expect((await it.ended).code).toBeGreaterThan(0)
    expect(await recordsOf(world, agent)).toMatchObject([revoked])
  })
})
