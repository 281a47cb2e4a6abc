import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { homeOf } from '../../src/cli/frame/process-host.ts'
import { NO_HOME } from '../../src/cli/frame/surroundings.ts'
import { spawnCli, startWorld, type World } from './support.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  env = { PATH: process.env['PATH'] ?? '', MAYFLY_KEYCHAIN: 'off', MAYFLY_TOKEN: world.agent.token }
  // What a stranger may have left in a directory that one works in.
  const theirs = join(world.home, '.config', 'mayfly')
  await mkdir(theirs, { recursive: true, mode: 0o700 })
  const profiles = { default: { server: 'http://127.0.0.1:9' } }
  await writeFile(join(theirs, 'config.json'), JSON.stringify({ version: 1, current: 'default', profiles }))
})
afterAll(() => world.close())

test.each(['', 'relative', '/dev/null', '/etc/hostname'])(
  'HOME=%j: the login goes to the server that is named, and nothing of the directory is read',
  async (HOME) => {
    const here = { cwd: world.home, env: { ...env, HOME } }
    const named = await spawnCli(['status', '--json'], {
      ...here,
      env: { ...here.env, MAYFLY_SERVER: world.url },
    }).ended
    expect(named).toMatchObject({ code: 0, stderr: '' })
    const unnamed = await spawnCli(['status'], here).ended
    expect(unnamed.stderr).not.toContain('127.0.0.1:9 ')
    expect(unnamed.stderr).not.toContain('127.0.0.1:9:')
  },
)

test('keeps nothing and says so', async () => {
  const own = { ...env, HOME: '', MAYFLY_SERVER: world.url }
  const { code, stdout, stderr } = await spawnCli(['login'], {
    cwd: world.home,
    env: own,
    stdin: world.agent.token,
  }).ended
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toBe(
    'mayfly: There is no home directory to store the login in. Set HOME, or pass the login in MAYFLY_TOKEN or MAYFLY_CLIENT_ID.\n',
  )
})

test('a user whom the system does not know has none', () => {
  const unknown = () => {
    throw new Error('uv_os_homedir returned ENOENT')
  }
  expect([homeOf(unknown), homeOf(() => ''), homeOf(() => 'x'), homeOf(() => '/home/x')]).toEqual([
    NO_HOME,
    NO_HOME,
    NO_HOME,
    '/home/x',
  ])
})
