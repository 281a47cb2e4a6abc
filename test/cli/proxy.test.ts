import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { proxyOf } from '../../src/cli/frame/proxy.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { freePort } from '../support/free-port.ts'
import { newAuthority } from './certificates.ts'
import { newHome, runCli, spawnCli } from './support.ts'

/** A server whose name only the proxy knows. */
const HOST = 'mayfly.internal.example'

let app: TestApp
let caFile: string
let proxy: { server: Server; url: string; asked: string[]; refuses: boolean }
let home: { home: string; env: Record<string, string> }
let env: Record<string, string>
beforeAll(async () => {
  home = await newHome()
  const authority = await newAuthority(home.home)
  caFile = authority.caFile
  const { certFile, keyFile } = await authority.issue({ name: 'server', dns: [HOST], ips: ['127.0.0.1'] })
  app = await startApp({ argv: { tlsCertFile: certFile, tlsKeyFile: keyFile } })
  proxy = await startProxy(Number(new URL(app.url).port))
})
afterAll(async () => {
  proxy.server.closeAllConnections()
  proxy.server.close()
  await app.close()
})
beforeEach(async () => {
  const agent = await app.newAgent({ scopes: ['demo'] })
  proxy.asked.length = 0
  proxy.refuses = false
  env = {
    ...home.env,
    MAYFLY_SERVER: `https://${HOST}`,
    MAYFLY_CA_FILE: caFile,
    MAYFLY_TOKEN: agent.token,
    HTTPS_PROXY: proxy.url,
  }
})

/** Every CONNECT leads to the server. */
async function startProxy(port: number) {
  const asked: string[] = []
  const server = createServer()
  const state = { server, url: '', asked, refuses: false }
  server.on('connect', (request, socket) => {
    asked.push(`${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim())
    if (state.refuses) {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
      return
    }
    const through = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket.pipe(through).pipe(socket)
    })
    socket.on('error', () => through.destroy())
    through.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  state.url = `http://127.0.0.1:${address.port}`
  return state
}

test.each(['HTTPS_PROXY', 'https_proxy'])(
  'reaches the server through %s, with its user and password',
  async (name) => {
    const { HTTPS_PROXY: _, ...others } = env
    const url = proxy.url.replace('//', '//me:pass@')
    const end = await spawnCli(['status'], { env: { ...others, [name]: url } }).ended
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(proxy.asked).toEqual([`${HOST}:443 Basic ${Buffer.from('me:pass').toString('base64')}`])
  },
)

test('a Node.js that knows no proxies says so, instead of going around it', () => {
  expect(() => proxyOf({ HTTPS_PROXY: 'http://x:1' }, '24.4.1')).toThrow('HTTPS_PROXY needs Node.js 24.5')
  expect(proxyOf({}, '24.4.1')).toBeUndefined()
})

test('doctor looks at the certificate through it, too', async () => {
  const { stdout } = await runCli(['doctor', '--json'], { env })
  const tls = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'tls')
  expect(tls).toMatchObject({
    level: 'warn',
    message: expect.stringMatching(/certificate expires in \d+ days/),
  })
})

test('goes around it to a host of NO_PROXY, and to this machine', async () => {
  const around = await runCli(['status'], { env: { ...env, NO_PROXY: `other,${HOST}` } })
  expect([around.code, around.stderr]).toEqual([3, expect.stringContaining('the name cannot be resolved')])
  const local = { ...env, MAYFLY_SERVER: app.url.replace('http:', 'https:') }
  expect((await runCli(['status'], { env: local })).code).toBe(0)
  expect(proxy.asked).toEqual([])
})

test('sends nothing to it for a server without TLS', async () => {
  const { MAYFLY_SERVER: _, ...others } = env
  const end = await runCli(['status', '--server', 'http://127.0.0.1:1'], {
    env: { ...others, HTTP_PROXY: proxy.url },
  })
  expect(end.code).not.toBe(0)
  expect(proxy.asked).toEqual([])
})

test('a proxy that is down or refuses is named by its variable, without its password', async () => {
  const down = `http://me:hunter2@127.0.0.1:${await freePort()}`
  const end = await runCli(['status'], { env: { ...env, HTTPS_PROXY: down } })
  expect(end).toMatchObject({
    code: 3,
    stderr: `mayfly: Cannot reach https://${HOST} (HTTPS_PROXY is set): nothing is listening there. Check HTTPS_PROXY; NO_PROXY names the hosts to reach without a proxy.\n`,
  })
  proxy.refuses = true
  const refused = await runCli(['status'], { env })
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('Check HTTPS_PROXY;')])
  const wrong = await runCli(['status'], { env: { ...env, HTTPS_PROXY: 'socks5://me:hunter2@x:1' } })
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('is not the address of an HTTP proxy'),
  ])
  expect(wrong.stderr).not.toContain('hunter2')
})
