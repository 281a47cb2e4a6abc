import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canMount, mountMemory, unmount } from '../support/mount.ts'
import { startFalseServer, TOKEN } from './false-server.ts'
import { configOf, newLogin, newStranger, secretFile } from './login-support.ts'
import { newHome, runCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const stranger = () => newStranger(world)
const loggedIn = () => newLogin(world)

/** A directory with a `secret-tool` that is this script, and the environment of a desktop around it. */
async function withKeychain(env: Record<string, string>, script: string): Promise<Record<string, string>> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-keychain-'))
  await writeFile(join(directory, 'secret-tool'), `#!/bin/sh\nSTORE='${directory}/store'\n${script}\n`)
  await chmod(join(directory, 'secret-tool'), 0o755)
  const { MAYFLY_KEYCHAIN: _, ...rest } = env
  return { ...rest, PATH: `${directory}:${env['PATH']}`, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/none' }
}
/** Keeps what it is given in a file, and notes how it was called. */
const WORKING = `
printf '%s\\n' "$*" >>"$STORE.calls"
case "$1" in
  store) cat >"$STORE" ;;
  lookup) [ -f "$STORE" ] || exit 1; cat "$STORE" ;;
  clear) rm -f "$STORE" ;;
esac`
/** The same, with a file for each account. */
const FOR_EACH = `
printf '%s\\n' "$*" >>"$STORE.calls"
file="$STORE.$(printf %s "$*" | sed 's|.* account ||; s|/|.|')"
case "$1" in
  store) cat >"$file" ;;
  lookup) [ -f "$file" ] || exit 1; cat "$file" ;;
  clear) rm -f "$file" ;;
esac`
const LOCKED = `echo 'secret-tool: Cannot prompt for unlocking' >&2; exit 1`

describe('files', () => {
  test('refuses a secret that others can read, and says how to fix it', async () => {
    const who = await loggedIn()
    await chmod(secretFile(who), 0o644)
    const { code, stderr } = await runCli(['status'], { env: who.env })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `mayfly: ${secretFile(who)} can be read by other users. Run: chmod 600 ${secretFile(who)}\n`,
    })
  })

  test.each(['', '{', 'null', '[]', '{"profiles":1}'])('profiles that are broken: %j', async (text) => {
    const who = await loggedIn()
    await writeFile(join(who.home, 'config/mayfly/config.json'), text, { mode: 0o600 })
    const { code, stderr } = await runCli(['status'], { env: who.env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/config\.json is damaged\. Fix it, or delete it and log in again\.\n$/)
  })

  test('something in the place of the profiles: the login of before stays', async () => {
    const who = await loggedIn()
    const before = await readFile(secretFile(who), 'utf8')
    // The place of the profile file is taken by something that cannot be replaced.
    const config = join(who.home, 'config/mayfly/config.json')
    const text = await readFile(config, 'utf8')
    const { rm } = await import('node:fs/promises')
    await rm(config)
    await mkdir(join(config, 'in-the-way'), { recursive: true })
    const failed = await runCli(['login'], { env: who.env, stdin: world.agent.token })
    expect(failed.code).toBe(1)
    expect(failed.stderr.split('\n')).toHaveLength(2)
    await rm(config, { recursive: true })
    await writeFile(config, text, { mode: 0o600 })
    expect(await readFile(secretFile(who), 'utf8')).toBe(before)
    expect((await readdir(join(who.home, 'config/mayfly/secrets'))).length).toBe(1)
  })

  test.each(['a b', '../x', '-x', 'x'.repeat(65)])('%j is no profile', async (name) => {
    const who = await stranger()
    const { code, stderr } = await runCli(['status', `--profile=${name}`], { env: who.env })
    expect({
      code,
      stderr: stderr.includes('is not a valid profile name') || stderr.includes('--profile'),
    }).toEqual({
      code: 2,
      stderr: true,
    })
  })
})

describe('the keychain', () => {
  test('holds the secret where there is one, and gets it by standard input only', async () => {
    const who = await stranger()
    const env = await withKeychain(who.env, WORKING)
    const { stderr } = await runCli(['login'], { env, stdin: world.agent.token })
    expect(stderr).toMatch(/The login is stored in the keychain \(secret-tool\)\.\n$/)
    expect(await readdir(join(who.home, 'config/mayfly'))).toEqual(['config.json', 'config.json.lock'])
    expect((await configOf(who)).profiles.default.secret_in).toBe('keychain')
    const status = await runCli(['status', '--json'], { env })
    expect(JSON.parse(status.stdout)).toMatchObject({ login_from: 'keychain' })
    expect(await runCli(['logout'], { env })).toMatchObject({ code: 0 })
    const directory = env['PATH']?.split(':')[0] ?? ''
    expect((await readdir(directory)).sort()).toEqual(['secret-tool', 'store.calls'])
    const calls = await readFile(join(directory, 'store.calls'), 'utf8')
    expect(calls).not.toContain(world.agent.token)
    expect(calls).toMatch(/store --label=Mayfly: default\/login service mayfly account default\/login/)
  })

  test('holds the login of a person beside that of the agent', async () => {
    const server = await startFalseServer()
    const { home, env: bare } = await newHome()
    const who = { home, env: { ...bare, MAYFLY_SERVER: server.url } }
    const env = await withKeychain(who.env, FOR_EACH)
    expect(await runCli(['login', '--device', '--no-keychain'], { env })).toMatchObject({ code: 0 })
    expect(await readdir(join(home, 'config/mayfly/secrets'))).toEqual(['default.operator.json'])
    // It takes the place of the file.
    expect(await runCli(['login', '--device'], { env })).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/and is stored in the keychain \(secret-tool\)\.\n$/),
    })
    expect((await configOf(who)).profiles.default.operator.secret_in).toBe('keychain')
    expect(await readdir(join(home, 'config/mayfly/secrets'))).toEqual([])
    const directory = env['PATH']?.split(':')[0] ?? ''
    expect(await readFile(join(directory, 'store.default.operator'), 'utf8')).toContain(TOKEN)
    expect(await runCli(['profile', 'show'], { env })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Kept in: +the keychain$/m),
    })
    expect(await runCli(['logout'], { env })).toMatchObject({ code: 0 })
    expect((await readdir(directory)).sort()).toEqual(['secret-tool', 'store.calls'])
    expect(await readFile(join(directory, 'store.calls'), 'utf8')).not.toContain(TOKEN)
    await server.close()
  })

  test('that is locked: prints one line that names --no-keychain', async () => {
    const who = await stranger()
    const env = await withKeychain(who.env, LOCKED)
    const { code, stdout, stderr } = await runCli(['login'], { env, stdin: world.agent.token })
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'mayfly: The keychain (secret-tool) is locked or does not respond. Unlock it, or keep secrets in files with --no-keychain or MAYFLY_KEYCHAIN=off.\n',
    })
    expect(await readdir(join(who.home, 'config/mayfly'))).toEqual(['config.json.lock'])
    const plain = await runCli(['login', '--no-keychain'], { env, stdin: world.agent.token })
    expect(plain).toMatchObject({ code: 0 })
    expect(await runCli(['status'], { env })).toMatchObject({ code: 0 })
  })

  test('that is locked later, or cannot be reached', async () => {
    const who = await stranger()
    const env = await withKeychain(who.env, WORKING)
    await runCli(['login'], { env, stdin: world.agent.token })
    expect(await runCli(['status'], { env: await withKeychain(who.env, LOCKED) })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/locked or does not respond/),
    })
    expect(await runCli(['status'], { env: who.env })).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/is not available here/),
    })
  })

  test.skipIf(!canMount)('holds the login of before when the profile cannot be written', async () => {
    const who = await stranger()
    const env = await withKeychain(who.env, WORKING)
    const config = join(who.home, 'config')
    await mkdir(config)
    mountMemory(config, 'mode=0700')
    try {
      await runCli(['login'], { env, stdin: world.agent.token })
      spawnSync('mount', ['-o', 'remount,ro', config])
      const other = await world.app.newAgent({ scopes: [] })
      const { code, stderr } = await runCli(['login'], { env, stdin: other.token })
      expect(code).toBe(1)
      expect(stderr).toMatch(/cannot be written: the file system is read-only\. The file is unchanged\.\n$/)
      const status = await runCli(['status', '--json'], { env })
      expect(JSON.parse(status.stdout).name).toBe(world.agent.name)
    } finally {
      unmount(config)
    }
  })

  test('is not asked without a session bus', async () => {
    const who = await stranger()
    const { DBUS_SESSION_BUS_ADDRESS: _, ...env } = await withKeychain(who.env, LOCKED)
    expect(await runCli(['login'], { env, stdin: world.agent.token })).toMatchObject({ code: 0 })
  })

  test('a move from files to the keychain leaves no copy behind', async () => {
    const who = await loggedIn()
    const env = await withKeychain(who.env, WORKING)
    await runCli(['login'], { env, stdin: world.agent.token })
    expect(await readdir(join(who.home, 'config/mayfly/secrets'))).toEqual([])
  })

  test('on macOS the secret goes through standard input of `security -i`', async () => {
    const who = await stranger()
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-security-'))
    const script = `#!/bin/sh
printf '%s\\n' "$*" >>'${directory}/calls'
case "$1" in
  -i) sed 's/.* -X //' | tr -d '\\n' >'${directory}/hex' ;;
  find-generic-password) [ -f '${directory}/hex' ] || exit 44
    "$NODE" -e 'process.stdout.write(Buffer.from(require("fs").readFileSync(process.argv[1], "utf8"), "hex"))' '${directory}/hex'; echo ;;
  delete-generic-password) rm '${directory}/hex' 2>/dev/null || exit 44 ;;
esac
`
    await writeFile(join(directory, 'security'), script, { mode: 0o755 })
    const { findKeychain } = await import('../../src/cli/session/keychain.ts')
    const env = { PATH: `${directory}:${who.env['PATH']}`, NODE: process.execPath }
    const keychain = findKeychain({ env, platform: 'darwin', signal: new AbortController().signal }, true)
    const secret = `{"a":"b'\\" $x ü"}`
    expect(await keychain?.load('p/login')).toBeUndefined()
    await keychain?.save('p/login', secret)
    expect(await keychain?.load('p/login')).toBe(secret)
    await keychain?.remove('p/login')
    await keychain?.remove('p/login')
    expect(await keychain?.load('p/login')).toBeUndefined()
    expect(await readFile(join(directory, 'calls'), 'utf8')).not.toContain(
      Buffer.from(secret).toString('hex'),
    )
  })
})
