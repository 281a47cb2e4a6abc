import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { decide, POLICY_YAML, pendingOf, privateFiles } from './enroll-support.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'

const HOUR_MS = 3_600_000
let world: World
let home: { home: string; env: Record<string, string> }
beforeAll(async () => {
  world = await startWorld({ yaml: POLICY_YAML })
})
afterAll(() => world.close())
beforeEach(async () => {
  home = await newHome()
  Object.assign(home.env, { MAYFLY_SERVER: world.url })
})
afterEach(async () => {
  for (const { id } of await pendingOf(world.app)) await decide(world.app, id, 'reject')
  await rm(home.home, { recursive: true })
})

const enroll = (argv: string[], more: object = {}) => runCli(['enroll', ...argv], { env: home.env, ...more })
const record = () => join(home.home, 'config/mayfly/secrets/default.enrollment.json')
const isKept = () =>
  readFile(record()).then(
    () => true,
    () => false,
  )

/** Asked, and left: the id. */
async function leave(name: string, ...more: string[]): Promise<string> {
  expect((await enroll(['--name', name, '--no-wait', ...more])).code).toBe(0)
  return (await pendingOf(world.app)).find((one) => one.name === name)?.id ?? ''
}

describe('forgets an enrollment that has ended and names the next step:', () => {
  test('rejected, with the administrator’s reason', async () => {
    await decide(world.app, await leave('refused'), 'reject', { reason: 'Not\u001b[2Jyou.' })
    const end = await enroll([])
    expect([end.code, end.stderr]).toEqual([
      5,
      'mayfly: The administrator rejected the enrollment: Not\ufffd[2Jyou. Talk to the administrator, then run `mayfly enroll` to ask again.\n',
    ])
    expect(await isKept()).toBe(false)
  })

  test('rejected while waiting, as JSON', async () => {
    const { said, ended } = spawnCli(['enroll', '--name', 'refused-2', '--json'], { env: home.env })
    await said('to approve, run')
    const [pending] = await pendingOf(world.app)
    await decide(world.app, pending?.id ?? '', 'reject')
    const end = await ended
    expect([end.code, end.stdout]).toEqual([5, ''])
    expect(JSON.parse(end.stderr.trim().split('\n').at(-1) ?? '')).toEqual({
      error: {
        code: 'enrollment_rejected',
        message: 'The administrator rejected the enrollment.',
        hint: expect.stringContaining('to ask again'),
      },
    })
  })

  test('approved, but collected long ago and not stored', async () => {
    const id = await leave('collected')
    await decide(world.app, id, 'approve')
    const before = await readFile(record())
    expect((await enroll([])).code).toBe(0)
    await rm(join(home.home, 'config/mayfly'), { recursive: true })
    await leave('other')
    await writeFile(record(), before)
    world.app.advance(11 * 60_000)
    await world.app.core.store.commit([
      world.app.core.store.enrollments.eraseAnswers(world.app.core.store.now()),
    ])
    const end = await enroll([], { ahead: 11 * 60_000 })
    expect([end.code, end.stderr]).toEqual([
      1,
      expect.stringMatching(
        /delivered more than ten minutes ago\. Have the administrator delete the agent collected, /,
      ),
    ])
    expect(await isKept()).toBe(false)
    world.app.advance(-11 * 60_000)
  })

  test('expired', async () => {
    await leave('late')
    world.app.advance(25 * HOUR_MS)
    const end = await enroll([], { ahead: 25 * HOUR_MS })
    world.app.advance(-25 * HOUR_MS)
    expect([end.code, end.stderr]).toEqual([
      1,
      'mayfly: The enrollment has expired. Run `mayfly enroll` again, and have it approved within a day.\n',
    ])
    expect(await isKept()).toBe(false)
  })
})

describe('keeps the enrollment for another attempt after', () => {
  test('a wrong clock', async () => {
    await leave('clock')
    const end = await enroll([], { ahead: -5 * 60_000 })
    expect([end.code, end.stderr]).toEqual([
      4,
      expect.stringMatching(
        /^mayfly: The clock of this machine is (5 min 0 s|4 min 59 s|5 min 1 s) behind the server\u2019s\. Set the clock/,
      ),
    ])
    expect(await isKept()).toBe(true)
  })

  test('an unknown enrollment', async () => {
    const id = await leave('unknown')
    const text = await readFile(record(), 'utf8')
    await writeFile(record(), text.replace(id, `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`))
    const end = await enroll([])
    expect([end.code, end.stderr]).toEqual([
      4,
      'mayfly: The server does not know this enrollment. Check the address. If it is right, ask again with `mayfly enroll --restart`.\n',
    ])
    expect(await isKept()).toBe(true)
  })

  test('an unreachable server', async () => {
    await leave('away')
    const text = await readFile(record(), 'utf8')
    await writeFile(record(), text.replace(world.url, 'http://127.0.0.1:9'))
    const env = { ...home.env, MAYFLY_SERVER: '' }
    const end = await runCli(['enroll'], { env })
    expect([end.code, end.stderr]).toEqual([
      3,
      expect.stringMatching(/^mayfly: Cannot reach http:\/\/127\.0\.0\.1:9: nothing is listening there\. /),
    ])
  })
})

test('refuses a record that others can read', async () => {
  await leave('open')
  await chmod(record(), 0o644)
  const end = await enroll([])
  expect([end.code, end.stderr]).toEqual([
    1,
    `mayfly: ${record()} can be read by other users. Run: chmod 600 ${record()}\n`,
  ])
  await chmod(record(), 0o600)
  await privateFiles(join(home.home, 'config'))
})

test('refuses a second enrollment at the same time', async () => {
  const first = spawnCli(['enroll', '--name', 'first'], { env: home.env })
  await first.said('to approve, run')
  const end = await enroll(['--name', 'second'])
  expect([end.code, end.stderr]).toEqual([
    1,
    'mayfly: Another `mayfly enroll` is running for the profile default. Let it finish or stop it first. For another agent, choose another --profile.\n',
  ])
  expect((await enroll(['--name', 'ci-other', '--profile', 'other'])).code).toBe(0)
  first.child.kill('SIGKILL')
  await first.ended
  expect((await enroll(['--no-wait'])).code).toBe(0)
  expect((await pendingOf(world.app)).map(({ name }) => name)).toEqual(['first'])
})

describe('another enrollment is under way', () => {
  test.each([[['--name', 'other']], [['--scope', 'demo:x']], [['--metadata', 'a=b']]])(
    'is not replaced by a different request: %j',
    async (argv) => {
      await leave('mine', '--scope', 'demo')
      const end = await enroll([...argv, '--no-wait'])
      expect([end.code, end.stderr]).toEqual([
        1,
        'mayfly: The enrollment of mine is under way. Continue it with `mayfly enroll`, drop it with --restart, or choose another --profile.\n',
      ])
    },
  )

  test('at another server', async () => {
    await leave('mine')
    const end = await enroll(['--server', 'http://127.0.0.1:9'])
    expect([end.code, end.stderr]).toEqual([
      1,
      `mayfly: The enrollment of mine at ${world.url} is under way. Continue it with \`mayfly enroll --server ${world.url}\`, drop it with --restart, or choose another --profile.\n`,
    ])
  })

  test('is dropped by --restart', async () => {
    const id = await leave('mine')
    const key = JSON.parse(await readFile(record(), 'utf8')).private_jwk
    const other = await leave('other', '--restart')
    expect(other).not.toBe(id)
    expect(JSON.parse(await readFile(record(), 'utf8')).private_jwk.x).not.toBe(key.x)
  })
})

describe('a keychain', () => {
  const KEYCHAIN = `
file="$STORE.$(printf %s "$*" | sed 's#.*account ##; s#/#.#g')"
case "$1" in
  store) cat >"$file" ;;
  lookup) [ -f "$file" ] || exit 1; cat "$file" ;;
  clear) rm -f "$file" ;;
esac`
  async function withKeychain(script: string): Promise<Record<string, string>> {
    const path = join(home.home, 'secret-tool')
    await writeFile(path, `#!/bin/sh\nSTORE='${home.home}/store'\n${script}\n`, { mode: 0o755 })
    const { MAYFLY_KEYCHAIN: _, ...env } = home.env
    return { ...env, PATH: `${home.home}:${env['PATH']}`, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/none' }
  }
  const run = (env: Record<string, string>, ...argv: string[]) => runCli(['enroll', ...argv], { env })

  test('that is locked: sends nothing', async () => {
    const env = await withKeychain("echo 'Cannot prompt' >&2; exit 1")
    const end = await run(env, '--name', 'locked')
    expect([end.code, end.stderr]).toEqual([
      1,
      'mayfly: The keychain (secret-tool) is locked or does not respond. Unlock it, or keep secrets in files with --no-keychain or MAYFLY_KEYCHAIN=off.\n',
    ])
    expect(await pendingOf(world.app)).toEqual([])
  })

  test('holds the key from the start, and no file holds any of it', async () => {
    const env = await withKeychain(KEYCHAIN)
    expect((await run(env, '--name', 'chained', '--no-wait')).code).toBe(0)
    const kept = JSON.parse(await readFile(join(home.home, 'store.default.enrollment'), 'utf8'))
    const [pending] = await pendingOf(world.app)
    expect(pending?.public_key_fingerprint).toBe(kept.fingerprint)
    await decide(world.app, pending?.id ?? '', 'approve')
    const end = await run(env)
    expect([end.code, end.stderr]).toEqual([
      0,
      expect.stringContaining('stored in the keychain (secret-tool).'),
    ])
    expect(await readdir(home.home)).toEqual(['config', 'secret-tool', 'store.default.login'])
    for (const text of Object.values(await privateFiles(join(home.home, 'config'))))
      expect(text).not.toContain(kept.private_jwk.d)
  })

  test('that locks in between: the command can be repeated', async () => {
    const open = await withKeychain(KEYCHAIN)
    await run(open, '--name', 'locks', '--no-wait')
    const [pending] = await pendingOf(world.app)
    await decide(world.app, pending?.id ?? '', 'approve')
    await withKeychain(`case "$*" in store*login) echo 'Cannot prompt' >&2; exit 1;; esac${KEYCHAIN}`)
    const end = await run(open)
    expect([end.code, end.stderr]).toEqual([
      1,
      'mayfly: The enrollment is approved, but the keychain (secret-tool) is locked or does not respond. Fix that and run `mayfly enroll` again within ten minutes: nothing is lost.\n',
    ])
    await withKeychain(KEYCHAIN)
    expect((await run(open)).code).toBe(0)
  })
})
