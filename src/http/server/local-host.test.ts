import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createLocalHostRule, forwardedHeaders, type LocalHostOptions } from './local-host.ts'

const PORT = 8480

interface Variation {
  options?: Partial<LocalHostOptions>
  headers?: Record<string, string | undefined>
  version?: [number, number]
  remote?: string | undefined
  local?: string | undefined
  url?: string
}

function ask({ options, headers, version = [1, 1], url = '/v1/admin/agents', ...ends }: Variation) {
  const rule = createLocalHostRule({
    mode: 'auto',
    port: () => PORT,
    issuerIsLoopback: true,
    trustedProxies: false,
    platform: 'linux',
    peerUid: () => 1000,
    serverUid: 1000,
    tls: false,
    ...options,
  })
  const all = { host: `127.0.0.1:${PORT}`, ...headers }
  const request = {
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)),
    httpVersionMajor: version[0],
    httpVersionMinor: version[1],
    url,
    socket: {
      remoteAddress: 'remote' in ends ? ends.remote : '127.0.0.1',
      localAddress: 'local' in ends ? ends.local : '127.0.0.1',
    },
  }
  return rule(request as unknown as IncomingMessage)
}

const header = (name: string, value = 'x'): Variation => ({ headers: { [name]: value } })
const host = (value: string | undefined): Variation => ({ headers: { host: value } })

describe('createLocalHostRule', () => {
  it.each<[string, Variation]>([
    ['by 127.0.0.1', {}],
    ['by localhost', host(`localhost:${PORT}`)],
    ['by LOCALHOST', host(`LOCALHOST:${PORT}`)],
    ['by [::1]', { ...host(`[::1]:${PORT}`), remote: '::1', local: '::1' }],
    ['mapped into IPv6', { remote: '::ffff:127.0.0.1', local: '::ffff:127.0.0.1' }],
    ['from elsewhere in 127/8', { remote: '127.9.9.9', local: '127.0.0.2' }],
    ['by HTTP/2', { version: [2, 0] }],
    ['typed into a browser', header('sec-fetch-site', 'none')],
    ['by root', { options: { peerUid: () => 0 } }],
    ['by our own user with a public issuer', { options: { issuerIsLoopback: false } }],
    [
      'by root with a public issuer, if we are root',
      { options: { issuerIsLoopback: false, peerUid: () => 0, serverUid: 0 } },
    ],
    ['with the uid found later', { options: { peerUid: async () => 1000 } }],
    ['on port 80 without a port', { ...host('localhost'), options: { port: () => 80 } }],
    ['on port 80 with the port', { ...host('localhost:80'), options: { port: () => 80 } }],
    ['on port 443 without a port', { ...host('127.0.0.1'), options: { port: () => 443, tls: true } }],
    ['on a Mac with a loopback issuer', { options: { platform: 'darwin', peerUid: () => undefined } }],
    ['with a cookie and a user agent', { headers: { cookie: 'a=b', 'user-agent': 'curl' } }],
  ])('is local %s', async (_name, variation) => {
    expect(await ask(variation)).toBe('local')
  })

  it.each<[string, Variation]>([
    ['when switched off', { options: { mode: 'off' } }],
    ['with trusted proxies', { options: { trustedProxies: true } }],
    ['on a Mac with a public issuer', { options: { platform: 'darwin', issuerIsLoopback: false } }],
    ['with a token', header('authorization', 'Bearer bad')],
    ['with an empty Authorization', header('authorization', '')],
    ['with a token and a public name', { headers: { authorization: 'Bearer x', host: 'mayfly.example' } }],
    ['from another machine', { remote: '10.0.0.7', local: '10.0.0.1' }],
    [
      'from another machine that names us localhost',
      { ...host(`localhost:${PORT}`), remote: '192.0.2.1', local: '192.0.2.2' },
    ],
    ['to an address that is not loopback', { local: '10.0.0.1' }],
    ['from an address that is not loopback', { remote: '10.0.0.1' }],
    ['over a unix socket', { remote: undefined, local: undefined }],
    ['from a look-alike address', { remote: '127.0.0.1.example' }],
    ['from 128.0.0.1', { remote: '128.0.0.1' }],
    ['by HTTP/1.0', { version: [1, 0] }],
    ['by HTTP/0.9', { version: [0, 9] }],
    ['with Forwarded', header('forwarded', 'for=192.0.2.1')],
    ['with X-Forwarded-For', header('x-forwarded-for')],
    ['with an empty X-Forwarded-Host', header('x-forwarded-host', '')],
    ['with X-Forwarded-Proto', header('x-forwarded-proto')],
    ['with X-Real-IP', header('x-real-ip')],
    ['with Via', header('via', '1.1 squid')],
    ['with CF-Connecting-IP', header('cf-connecting-ip')],
    ['with CF-Ray', header('cf-ray')],
    ['with True-Client-IP', header('true-client-ip')],
    ['with X-Client-IP', header('x-client-ip')],
    ['with X-Envoy-External-Address', header('x-envoy-external-address')],
    ['with Tailscale-User-Login', header('tailscale-user-login')],
    [
      'forwarded under a public name',
      { headers: { 'x-forwarded-for': '192.0.2.1', host: 'mayfly.example' } },
    ],
    ['with Origin', header('origin', 'http://localhost:3000')],
    ['with our own Origin', header('origin', `http://127.0.0.1:${PORT}`)],
    ['with Origin: null', header('origin', 'null')],
    ['cross-site', header('sec-fetch-site', 'cross-site')],
    ['same-origin', header('sec-fetch-site', 'same-origin')],
    ['same-site', header('sec-fetch-site', 'same-site')],
    ['with two Sec-Fetch-Site', header('sec-fetch-site', 'none, none')],
    ['by root with a public issuer', { options: { issuerIsLoopback: false, peerUid: () => 0 } }],
    ['by another user', { options: { peerUid: () => 33 } }],
    ['by another user, found later', { options: { peerUid: async () => 33 } }],
    ['by nobody that can be found', { options: { peerUid: () => undefined } }],
    ['by nobody that can be found, later', { options: { peerUid: async () => undefined } }],
    ['in the absolute form', { url: `http://127.0.0.1:${PORT}/v1/admin/agents` }],
  ])('is not local %s', async (_name, variation) => {
    expect(await ask(variation)).toBe('not_local')
  })

  it.each<[string, Variation]>([
    ['a public name', host(`mayfly.example:${PORT}`)],
    [
      'a public name rebound by a page',
      { headers: { host: `evil.example:${PORT}`, origin: `http://evil.example:${PORT}` } },
    ],
    ['no name', host(undefined)],
    ['an empty name', host('')],
    ['no port', host('localhost')],
    ['another port', host('localhost:80')],
    ['a long port', host(`localhost:0${PORT}0`)],
    ['a name below localhost', host(`a.localhost:${PORT}`)],
    ['localhost below a name', host(`localhost.evil.example:${PORT}`)],
    ['a trailing dot', host(`localhost.:${PORT}`)],
    ['another loopback address', host(`127.0.0.2:${PORT}`)],
    ['a short address', host(`127.1:${PORT}`)],
    ['user information', host(`localhost:${PORT}@evil.example`)],
    ['a list', host(`localhost:${PORT}, evil.example`)],
    ['::1 without brackets', host(`::1:${PORT}`)],
  ])('is misdirected with %s', async (_name, variation) => {
    expect(await ask(variation)).toBe('misdirected')
  })

  it('rejects when the uid cannot be asked', async () => {
    await expect(ask({ options: { peerUid: () => Promise.reject(new Error('no /proc')) } })).rejects.toThrow(
      'no /proc',
    )
  })
})

describe('forwardedHeaders', () => {
  it('knows the headers of proxies', () => {
    expect(forwardedHeaders({ host: 'x', accept: '*/*', 'x-request-id': '1' })).toBe(false)
    expect(forwardedHeaders({ 'x-forwarded-port': '1' })).toBe(true)
  })
})
