import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Eavesdropper, eavesdropAs } from '../support/eavesdropper.ts'
import { type CliEnd, newHome, runCli, startWorld, type World } from './support.ts'

const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0
const OTHER = 65_533
const SECRET = 'backend-password-of-the-test'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const open: Eavesdropper[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.end()
})
async function eavesdrop(where: Parameters<typeof eavesdropAs>[1]): Promise<Eavesdropper> {
  const one = await eavesdropAs(OTHER, where)
  open.push(one)
  return one
}

const VERBS: [string, string[], string?][] = [
  ['get', ['get', 'demo']],
  ['status', ['status']],
  ['enroll', ['enroll', '--name', 'x', '--no-wait']],
  ['backend add', ['backend', 'add', 'jwt', 'j', '--audience', 'a', '--signing-key', '-'], SECRET],
  ['agent create', ['agent', 'create', 'x', '--scope', 'demo:*']],
]

function expectRefused(end: CliEnd): void {
  expect([end.code, end.stdout]).toEqual([3, ''])
  expect(end.stderr).toContain('Another user of this machine listens on ')
  expect(end.stderr).toContain('nothing was sent')
  expect(end.stderr).toContain('MAYFLY_DATA_DIR')
}

describe.runIf(isRootOnLinux)('a listener of another user of this machine', () => {
  test.each(VERBS)('gets nothing from %s', async (_verb, argv, stdin) => {
    const { port, end } = await eavesdrop({ host: '127.0.0.1' })
    const env = { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    expectRefused(await runCli(argv, { env, ...(stdin === undefined ? {} : { stdin }) }))
    expect(await end()).toBe('')
  })

  test('gets nothing from an administrator without a login', async () => {
    const { port, end } = await eavesdrop({ host: '127.0.0.1' })
    const env = { ...world.bareEnv, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    expectRefused(await runCli(['agent', 'create', 'x', '--scope', 'demo:*'], { env }))
    expect(await end()).toBe('')
  })

  test('gets nothing on ::1 while our own server has the same port on 127.0.0.1', async () => {
    const { port } = new URL(world.url)
    const { end } = await eavesdrop({ host: '::1', port: Number(port) })
    const at = (host: string) => ({ env: { ...world.env, MAYFLY_SERVER: `http://${host}:${port}` } })
    expectRefused(await runCli(['status'], at('[::1]')))
    expect((await runCli(['status'], at('127.0.0.1'))).code).toBe(0)
    // It may be either, and only the address that the command connects to counts.
    const either = await runCli(['status'], at('localhost'))
    if (either.code !== 0) expectRefused(either)
    expect(await end()).toBe('')
  })

  test.each(['127.0.0.1', '::ffff:127.0.0.1'])(
    'cannot share our 127.0.0.1 by listening on %s',
    async (host) => {
      const ours = createServer().listen({ host: '127.0.0.1', port: 0, reusePort: true })
      await once(ours, 'listening')
      const { port } = ours.address() as { port: number }
      const program = `require('node:net').createServer()
      .on('error', ({ code }) => console.log(code))
      .listen(JSON.parse(process.argv[1]), () => process.exit())`
      const where = JSON.stringify({ host, port, reusePort: true })
      const asUser = (uid: number) =>
        spawnSync(process.execPath, ['-e', program, where], {
          uid,
          gid: uid,
          cwd: '/',
          env: {},
          encoding: 'utf8',
        })
      expect(asUser(OTHER).stdout).toBe('EADDRINUSE\n')
      expect(asUser(0).stdout).toBe('')
      ours.close()
    },
  )

  test('gets a login if it owns the data directory that is named', async () => {
    const { port, end } = await eavesdrop({ host: '127.0.0.1' })
    const { home } = await newHome()
    await chown(home, OTHER, OTHER)
    const env = { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}`, MAYFLY_DATA_DIR: home }
    await runCli(['status'], { env })
    expect(await end()).toContain(world.agent.token)
  })

  test('does not become trusted by a directory ./mayfly-data of its own', async () => {
    const { port, end } = await eavesdrop({ host: '127.0.0.1' })
    const { home } = await newHome()
    await mkdir(join(home, 'mayfly-data'))
    await chown(join(home, 'mayfly-data'), OTHER, OTHER)
    const env = { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` }
    expectRefused(await runCli(['status'], { env, cwd: home }))
    expect(await end()).toBe('')
  })

  test('is distinguished from a port on which nothing listens', async () => {
    const { port, end } = await eavesdrop({ host: '127.0.0.1' })
    await end()
    const done = await runCli(['status'], {
      env: { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` },
    })
    expect(done.stderr).toContain('nothing is listening there')
  })
})

describe.runIf(isRootOnLinux)('a socket file of another user', () => {
  const directoryOf = async (uid: number) => {
    const { home } = await newHome()
    await mkdir(join(home, 'mayfly-data'))
    await chown(join(home, 'mayfly-data'), OTHER, OTHER)
    const path = join(home, 'mayfly-data', 'admin.sock')
    await chmod(home, 0o755)
    const heard = await eavesdrop({ path })
    await chown(join(home, 'mayfly-data'), uid, uid)
    expect((await stat(path)).uid).toBe(OTHER)
    return { home, path, heard }
  }
  const CREATE = ['agent', 'create', 'x', '--scope', 'demo:*']

  test.each([
    ['--data-dir', (path: string) => ['--data-dir', join(path, '..')]],
    ['unix:', (path: string) => ['--server', `unix:${path}`]],
  ])('gets nothing by %s', async (_how, flags) => {
    const { path, heard, home } = await directoryOf(0)
    const done = await runCli([...CREATE, ...flags(path)], { env: world.bareEnv })
    expect([done.code, done.stdout]).toEqual([3, ''])
    expect(done.stderr).toContain('belongs to another user; nothing was sent')
    expect(await heard.end()).toBe('')
    await rm(home, { recursive: true })
  })

  test('is not looked for in a directory ./mayfly-data of that user', async () => {
    const { heard, home } = await directoryOf(OTHER)
    const done = await runCli(CREATE, { env: world.bareEnv, cwd: home })
    expect(done.code).not.toBe(0)
    expect(await heard.end()).toBe('')
    await rm(home, { recursive: true })
  })

  test('is used if that user owns the data directory that is named', async () => {
    const { path, heard, home } = await directoryOf(OTHER)
    await runCli([...CREATE, '--data-dir', join(path, '..')], { env: world.bareEnv })
    expect(await heard.end()).toContain('POST /v1/admin/agents')
    await rm(home, { recursive: true })
  })
})
