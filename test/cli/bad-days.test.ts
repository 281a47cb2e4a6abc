import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { canMount, mountMemory, unmount } from '../support/mount.ts'
import { type Authority, newAuthority } from './certificates.ts'
import { newHome, runCli, spawnCli, startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

describe('addresses', () => {
  test.each<[string, number, RegExp]>([
    ['mayfly.example.com', 2, /is not a server address\. Write it as https:/],
    ['localhost:8620', 2, /is not a server address/],
    ['ftp://x', 2, /is not a server address/],
    ['https://user:hunter2@x', 2, /contains a user or a password/],
    ['https://x?token=hunter2', 2, /contains a query or a fragment/],
    ['http://mayfly.example.com', 2, /Your secrets would travel to .* unencrypted\. Use https/],
    ['http://nowhere.invalid', 2, /unencrypted/],
    [
      'https://nowhere.invalid',
      3,
      /^mayfly: Cannot reach https:\/\/nowhere\.invalid: the name cannot be resolved\. Check the name/,
    ],
    ['http://127.0.0.1:9', 3, /nothing is listening there/],
    [
      'unix:/nowhere/mayfly.sock',
      3,
      /^mayfly: Cannot reach unix:\/nowhere\/mayfly\.sock: the socket file does not exist/,
    ],
  ])('%s: %i', async (server, code, line) => {
    const ended = await runCli(['status'], { env: { ...world.env, MAYFLY_SERVER: server } })
    expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: '' })
    expect(ended.stderr).toMatch(line)
    expect(ended.stderr.split('\n')).toHaveLength(2)
    expect(ended.stderr).not.toContain('hunter2')
  })

  test('http to elsewhere is possible where it is wanted', async () => {
    const env = { ...world.env, MAYFLY_SERVER: 'http://nowhere.invalid', MAYFLY_ALLOW_HTTP: '1' }
    expect(await runCli(['status'], { env })).toMatchObject({ code: 3 })
  })

  test('a server that does not speak HTTP', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { code, stderr } = await runCli(['status'], {
      env: { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` },
    })
    expect(code).toBe(3)
    expect(stderr).toMatch(/the answer is not HTTP\. Check the address and its port\.\n$/)
    server.close()
  })
})

describe('TLS', () => {
  let authority: Authority
  let home: string
  const apps: TestApp[] = []
  beforeAll(async () => {
    home = (await newHome()).home
    authority = await newAuthority(home)
  })
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()))
  })
  const serving = async (wish: Parameters<Authority['issue']>[0]) => {
    const { certFile, keyFile } = await authority.issue(wish)
    const app = await startApp({ argv: { tlsCertFile: certFile, tlsKeyFile: keyFile } })
    apps.push(app)
    return { app, url: app.url.replace('http:', 'https:') }
  }
  const status = (url: string, ...argv: string[]) =>
    runCli(['status', ...argv], { env: { ...world.env, MAYFLY_SERVER: url } })

  test('refuses an untrusted authority, until --ca or MAYFLY_CA_FILE names it', async () => {
    const { app, url } = await serving({ name: 'good', dns: ['localhost'], ips: ['127.0.0.1'] })
    const { code, stderr } = await status(url)
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: `mayfly: Cannot reach ${url}: its certificate is not signed by a trusted authority. Give the certificate of its authority with --ca FILE or MAYFLY_CA_FILE.\n`,
    })
    const { token } = await app.newAgent({ scopes: [] })
    const env = { ...world.bareEnv, MAYFLY_SERVER: url, MAYFLY_TOKEN: token }
    expect(await runCli(['status', '--ca', authority.caFile], { env })).toMatchObject({ code: 0 })
    const named = { ...env, MAYFLY_CA_FILE: authority.caFile }
    expect(await runCli(['status'], { env: named })).toMatchObject({ code: 0 })
  })

  test('expired, and for another name', async () => {
    const expired = await serving({ name: 'old', ips: ['127.0.0.1'], daysLeft: -1 })
    const old = await status(expired.url, '--ca', authority.caFile)
    expect(old.code).toBe(3)
    expect(old.stderr).toMatch(/its certificate is not valid today\. Renew/)
    const other = await serving({ name: 'other', dns: ['mayfly.example.com'] })
    const wrong = await status(other.url, '--ca', authority.caFile)
    expect(wrong.code).toBe(3)
    expect(wrong.stderr).toMatch(/its certificate is for another name\. Use the name/)
  })

  test('https to a server that speaks http, and the other way round', async () => {
    const https = await status(world.url.replace('http:', 'https:'))
    expect(https.code).toBe(3)
    expect(https.stderr).toMatch(/it does not speak TLS there\. Try http:\/\//)
    const { url } = await serving({ name: 'again', ips: ['127.0.0.1'] })
    const http = await status(url.replace('https:', 'http:'))
    expect(http.code).toBe(3)
    expect(http.stderr).toMatch(/http or https/)
  })

  test('a file that holds no certificate, or is not there', async () => {
    await writeFile(join(home, 'nonsense.pem'), 'hello')
    expect(await status(world.url, '--ca', join(home, 'nonsense.pem'))).toMatchObject({ code: 2 })
    expect((await status(world.url, '--ca', join(home, 'absent.pem'))).stderr).toMatch(
      /absent\.pem: no such file/,
    )
  })

  test('the login remembers its certificate authority', async () => {
    const { app, url } = await serving({ name: 'kept', ips: ['127.0.0.1'] })
    const created = await fetchOver(app, authority)
    const { home: fresh, env } = await newHome()
    const argv = ['login', '--server', url, '--ca', authority.caFile]
    expect(await runCli(argv, { env, stdin: created })).toMatchObject({ code: 0 })
    expect(await runCli(['status'], { env, cwd: fresh })).toMatchObject({ code: 0 })
  })

  async function fetchOver(app: TestApp, { caFile }: Authority): Promise<string> {
    const { createClient } = await import('../../src/client/client.ts')
    const { nodeTransport } = await import('../../src/cli/frame/transport.ts')
    const client = createClient({
      server: app.url.replace('http:', 'https:'),
      auth: { kind: 'none' },
      transport: nodeTransport({ ca: await readFile(caFile, 'utf8') }),
    })
    return (await client.admin.agents.create({ name: 'over-tls' })).token
  }
})

describe('files', () => {
  test('a directory that cannot be written: nothing is kept, one line', async () => {
    const { home, env } = await newHome()
    await writeFile(join(home, 'config'), 'a file where the directory should be')
    const { code, stderr } = await runCli(['login'], {
      env: { ...env, MAYFLY_SERVER: world.url },
      stdin: world.agent.token,
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/cannot be written|cannot be read|not a directory/)
    expect(stderr.split('\n')).toHaveLength(2)
    expect(await readdir(home)).toEqual(['config'])
  })

  test('something else in the place of the profiles', async () => {
    const { home, env } = await newHome()
    await mkdir(join(home, 'config/mayfly'), { recursive: true, mode: 0o700 })
    await symlink('/dev/zero', join(home, 'config/mayfly/config.json'))
    const { code, stderr } = await runCli(['status'], { env: { ...env, MAYFLY_SERVER: world.url } })
    expect(code).toBe(1)
    expect(stderr).toMatch(/config\.json is not a regular file\. Move it away\.\n$/)
  })

  test.skipIf(!canMount)('a full disk: the earlier login stays, and no file is left over', async () => {
    const { home, env } = await newHome()
    const config = join(home, 'config')
    await mkdir(config)
    mountMemory(config, 'size=64k,mode=0700')
    try {
      const own = { ...env, MAYFLY_SERVER: world.url }
      expect(await runCli(['login'], { env: own, stdin: world.agent.token })).toMatchObject({ code: 0 })
      const other = await world.app.newAgent({ scopes: [] })
      spawnSync('sh', ['-c', `cat /dev/zero >'${config}/filler' 2>/dev/null`])
      const { code, stdout, stderr } = await runCli(['login'], { env: own, stdin: other.token })
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^mayfly: .* cannot be written: the disk is full\. The file is unchanged\.\n$/)
      const status = await runCli(['status', '--json'], { env: own })
      expect(JSON.parse(status.stdout).name).toBe(world.agent.name)
      expect((await readdir(join(config, 'mayfly/secrets'))).sort()).toEqual(['default.login.json'])
    } finally {
      unmount(config)
    }
  })

  test('an access token that cannot be cached is no reason to fail', async () => {
    const { home, env } = await newHome()
    await writeFile(join(home, 'cache'), 'a file where the directory should be')
    const { client_id, client_secret } = world.agent.oidc
    const login = {
      MAYFLY_CLIENT_ID: client_id,
      MAYFLY_CLIENT_SECRET: client_secret,
      MAYFLY_SERVER: world.url,
    }
    expect(await runCli(['status'], { env: { ...env, ...login } })).toMatchObject({ code: 0, stderr: '' })
  })

  test('profiles that others can write are not believed', async () => {
    const { home, env } = await newHome()
    await mkdir(join(home, 'config/mayfly'), { recursive: true })
    const path = join(home, 'config/mayfly/config.json')
    await writeFile(path, '{"profiles":{}}')
    await chmod(path, 0o666)
    const { code, stderr } = await runCli(['status'], { env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/can be changed by other users\. Run: chmod 600/)
  })
})

describe('the terminal', () => {
  test('a closed pipe ends a listing without a word', async () => {
    const { child, ended } = spawnCli(['status'], { env: world.env })
    child.stdout?.destroy()
    const { code, stderr } = await ended
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
  })

  test('text from others cannot steer it', async () => {
    await world.app.newBackend({ name: 'tricky', description: 'a\u202eb' })
    const { stdout } = await runCli(['backends'], { env: world.env })
    expect(stdout).toContain('a\ufffdb')
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('%s while nobody answers', async (signal) => {
    const arrived = Promise.withResolvers<void>()
    const server = createServer(() => arrived.resolve())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { child, ended } = spawnCli(['status'], {
      env: { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` },
    })
    await arrived.promise
    child.kill(signal)
    const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }
    expect(await ended).toEqual({ code: codes[signal], signal: null, stdout: '', stderr: '' })
    server.close()
  })
})
