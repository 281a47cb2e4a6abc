import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newRequest } from '../../../test/contract/open-kind.ts'
import { createTestHost } from '../../../test/support/host.ts'
import type { Config } from './config.ts'
import { ldap } from './kind.ts'

const ROOT = 'dc=example,dc=com'
const base: Config = {
  ...{ url: 'ldap://localhost:1', bind_dn: `cn=mayfly,${ROOT}`, bind_password: 'hidden-password' },
  ...{ base: `ou=agents,${ROOT}`, groups: [`cn=readers,${ROOT}`, `CN=Writers,${ROOT}`] },
  ...{ group_attribute: 'member', tls: 'disable', local: true },
} as const
const { host, logged } = createTestHost('directory')

describe('a server that does not behave', () => {
  let server: Server
  let behave: (socket: Socket) => void = () => {}
  const sockets = new Set<Socket>()
  const url = () => `ldap://localhost:${(server.address() as { port: number }).port}`

  beforeAll(async () => {
    server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      behave(socket)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  /** A bind response (RFC 4511 §4.2.2) without an error, so that what comes next is the issue. */
  const welcome = (id: number) => Buffer.from([0x30, 12, 2, 1, id, 0x61, 7, 0x0a, 1, 0, 4, 0, 4, 0])
  const welcomeThen = (then: (socket: Socket) => void) => (socket: Socket) =>
    socket.once('data', (bind) => {
      socket.write(welcome(bind[4] ?? 0))
      socket.once('data', () => then(socket))
    })
  const flood = (socket: Socket) => {
    const chunk = Buffer.alloc(65_536)
    // A message of 100 MB, which its length announces.
    socket.write(Buffer.from([0x30, 0x84, 6, 0, 0, 0]))
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  }

  it.each<[string, (socket: Socket) => void, string]>([
    ['says nothing', () => {}, 'timeout'],
    ['hangs up', (socket) => socket.end(), 'unavailable'],
    ['resets', (socket) => socket.once('data', () => socket.resetAndDestroy()), 'unavailable'],
    ['sends too much', flood, 'unavailable'],
    ['speaks HTTP', (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), 'timeout'],
    ['says nothing to the issue', welcomeThen(() => {}), 'timeout'],
    ['hangs up during the issue', welcomeThen((socket) => socket.end()), 'unavailable'],
    ['resets during the issue', welcomeThen((socket) => socket.resetAndDestroy()), 'unavailable'],
    ['sends too much during the issue', welcomeThen(flood), 'unavailable'],
  ])('%s', async (_, behavior, fault) => {
    behave = behavior
    await using backend = await ldap.open({ ...base, url: url() }, host)
    // Only what never comes is waited for: a busy machine may take long for the rest.
    const signal = AbortSignal.timeout(fault === 'timeout' ? 700 : 60_000)
    const begun = performance.now()
    const issuing = backend.issue({ ...newRequest(['readers']), params: {} }, signal)
    await expect(issuing).rejects.toMatchObject({ name: 'BackendError', fault })
    expect(performance.now() - begun).toBeLessThan(20_000)
    expect(logged()).not.toContain('hidden-password')
  })

  it('never gets a request over a connection that was made again', async () => {
    let connections = 0
    behave = (socket) => {
      connections += 1
      welcomeThen((one) => one.end())(socket)
    }
    await using backend = await ldap.open({ ...base, url: url() }, host)
    const ask = () =>
      backend.issue({ ...newRequest(['readers']), params: {} }, AbortSignal.timeout(60_000)).catch(() => 0)
    await ask()
    await ask()
    // Each began with a login of its own.
    expect(connections).toBe(2)
  })
})

describe('a configuration', () => {
  it.each<[Partial<Config>, RegExp]>([
    [{ url: 'ldaps://h', tls: 'disable' }, /"tls"/],
    [{ groups: ['cn=a,dc=x', 'CN=A,dc=y'] }, /two groups of the same name/],
    [{ groups: ['cn=two words,dc=x'] }, /a name that a scope can have/],
    [{ groups: ['cn=a\\,b,dc=x'] }, /a name that a scope can have/],
    [{ ca: 'x' }, /"ca" needs/],
    [{ connect_url: 'ldap://[' }, /"connect_url"/],
  ])('is refused: %j', async (overrides, message) => {
    await expect(ldap.complete?.({ ...base, ...overrides })).rejects.toThrow(message)
  })

  it('decides which groups a scope reaches, ignoring case as LDAP does', () => {
    const gives = (scope: string) => ldap.scopes.gives?.(base, scope)
    for (const scope of ['readers', 'READERS', 'writers', 'w*', '*'])
      expect([scope, gives(scope)]).toEqual([scope, true])
    for (const scope of ['reader', 'x*', 'readers,dc']) expect([scope, gives(scope)]).toEqual([scope, false])
    for (const scope of ['a:b', 'a)(uid=*', 'a,b', '']) expect(ldap.scopes.valid(scope)).toBe(false)
  })
})
