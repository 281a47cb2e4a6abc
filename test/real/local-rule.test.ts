import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { eventually } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'

const SERVER_UID = 65_533
const STRANGER = 64_321
const ADMIN = '/v1/admin/agents'
const isRootOnLinux = process.platform === 'linux' && process.getuid?.() === 0
const as = (uid: number) => ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']

const cleanUp: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const one of cleanUp.splice(0).toReversed()) await one()
})

async function directory(owner = 0): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'mayfly-rule-'))
  await chown(path, owner, owner)
  cleanUp.push(() => rm(path, { recursive: true, force: true }))
  return path
}

async function start(by: readonly string[], dataDir: string, ...flags: string[]): Promise<ServerProcess> {
  const server = await startServerProcess({ dataDir, by, flags })
  cleanUp.push(server.terminate)
  return server
}

/** The status of an administrator's request without credentials, sent by a process of this user. */
async function askAs(uid: number, url: string): Promise<number> {
  const [program = '', ...args] = [...as(uid), 'curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', url]
  const { stdout } = await promisify(execFile)(program, args)
  return Number(stdout)
}

const throughSocket = async (server: ServerProcess) => (await server.call(undefined, 'GET', ADMIN)).status

describe.runIf(isRootOnLinux)('in a user namespace', () => {
  test.each([
    ['that maps nobody', ['unshare', '--user']],
    ['that maps the server to nobody', ['unshare', '--user', '--map-user=65534']],
  ])('%s, the server takes no unmapped user for its own', async (_which, by) => {
    const server = await start(by, await directory())
    expect(await askAs(STRANGER, server.address + ADMIN)).toBe(401)
    expect(await throughSocket(server)).toBe(200)
  })

  test('the server still knows its own user', async () => {
    const server = await start(['unshare', '--user', '--map-root-user'], await directory())
    expect(await askAs(0, server.address + ADMIN)).toBe(200)
    expect(await askAs(STRANGER, server.address + ADMIN)).toBe(401)
  })
})

type Proxy = (to: string, port: number, folder: string) => Promise<readonly string[]>

/** Both send HTTP/1.1, a local `Host`, and nothing that shows that they are proxies. */
const PROXIES: Record<string, Proxy> = {
  nginx: async (to, port, folder) => {
    const temporary = ['client_body', 'fastcgi', 'proxy', 'scgi', 'uwsgi']
    const config = `
      user root;
      daemon off;
      pid ${folder}/nginx.pid;
      events {}
      http {
        access_log off;
        ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
        server {
          listen 127.0.0.1:${port};
          location / {
            proxy_pass http://${to};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host ${to};
          }
        }
      }`
    await writeFile(join(folder, 'nginx.conf'), config)
    return ['nginx', '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
  },
  HAProxy: async (to, port, folder) => {
    const config = `
defaults
  mode http
  timeout connect 10s
  timeout client 10s
  timeout server 10s
listen mayfly
  bind 127.0.0.1:${port}
  http-request set-header Host ${to}
  server mayfly ${to}
`
    await writeFile(join(folder, 'haproxy.cfg'), config)
    return ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')]
  },
}

/** Starts it as root. Returns its address. */
async function startProxy(proxy: Proxy, server: ServerProcess): Promise<string> {
  const port = await freePort()
  const [program = '', ...args] = await proxy(new URL(server.address).host, port, await directory())
  const child: ChildProcess = spawn(program, args, { stdio: 'ignore' })
  process.once('exit', () => child.kill())
  cleanUp.push(() => {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    return ended
  })
  const address = `http://127.0.0.1:${port}`
  await eventually(async () => {
    expect((await fetch(`${address}/health`)).status).toBe(200)
  })
  return address
}

describe.runIf(isRootOnLinux).each(Object.entries(PROXIES))('%s that runs as root', (_name, proxy) => {
  const PUBLIC = ['--issuer', 'https://mayfly.example.com']

  test('is not the local administrator of a server with a public issuer', async () => {
    const server = await start(as(SERVER_UID), await directory(SERVER_UID), ...PUBLIC)
    expect(await askAs(STRANGER, (await startProxy(proxy, server)) + ADMIN)).toBe(401)
    expect(await askAs(0, server.address + ADMIN)).toBe(401)
    expect(await askAs(SERVER_UID, server.address + ADMIN)).toBe(200)
    expect(await throughSocket(server)).toBe(200)
  })

  test('is the local administrator of a server that is root, too, and does not trust it as a proxy', async () => {
    const server = await start([], await directory(), ...PUBLIC)
    expect(await askAs(STRANGER, (await startProxy(proxy, server)) + ADMIN)).toBe(200)
    const told = await start([], await directory(), ...PUBLIC, '--trusted-proxy', '127.0.0.1/32')
    expect(await askAs(STRANGER, (await startProxy(proxy, told)) + ADMIN)).toBe(401)
    expect(await throughSocket(told)).toBe(200)
  })
})
