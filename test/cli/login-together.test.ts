import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { tryLock } from '../../src/cli/session/file-lock.ts'
import { configOf, newLogin, newStranger } from './login-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())
afterEach(() => void vi.useRealTimers())

/** A keychain in which each writer waits for a second writer, for a second at most. */
const MEETING = `#!/bin/sh
[ "$1" = store ] || exit 1
cat >/dev/null
mkdir "$MEETING/$$"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ "$(ls "$MEETING" | wc -l)" -lt 2 ] || exit 0
  sleep 0.05
done
`

test('two logins at one moment are both kept', async () => {
  const { home, env } = await newStranger(world)
  const tools = await mkdtemp(join(tmpdir(), 'mayfly-keychain-'))
  await writeFile(join(tools, 'secret-tool'), MEETING, { mode: 0o755 })
  await mkdir(join(tools, 'meeting'))
  const { MAYFLY_KEYCHAIN: _, ...rest } = env
  const desktop = {
    ...rest,
    PATH: `${tools}:${env['PATH']}`,
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/none',
    MEETING: join(tools, 'meeting'),
  }
  const login = (profile: string) =>
    spawnCli(['login', '--profile', profile], { env: desktop, stdin: world.agent.token }).ended
  expect(await Promise.all(['one', 'two'].map(login))).toMatchObject([{ code: 0 }, { code: 0 }])
  expect(Object.keys((await configOf({ home, env })).profiles).sort()).toEqual(['one', 'two'])
})

test('a login that waits too long for another says so and changes nothing', async () => {
  const who = await newLogin(world)
  const before = await configOf(who)
  const path = join(who.home, 'config/mayfly/config.json')
  const release = await tryLock(`${path}.lock`)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  let isOver = false
  const logout = runCli(['logout'], { env: who.env }).finally(() => {
    isOver = true
  })
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(25)
    await setImmediate()
  }
  expect(await logout).toEqual({
    code: 1,
    stdout: '',
    stderr: `mayfly: Another mayfly process is changing ${path} and does not finish. Answer its question or stop it, then try again.\n`,
  })
  expect(await configOf(who)).toEqual(before)
  release?.()
  vi.useRealTimers()
  expect(await runCli(['logout'], { env: who.env })).toMatchObject({ code: 0 })
})
