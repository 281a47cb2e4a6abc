import { expect, test } from 'vitest'
import type { Config } from '../config/config.ts'
import { isOpenWithoutTls } from './listen.ts'

const isOpen = (more: object) =>
  isOpenWithoutTls({
    listen: { host: '0.0.0.0', port: 8620 },
    tls: undefined,
    issuer: 'http://127.0.0.1:8620',
    trustedProxies: [],
    ...more,
  } as unknown as Config)

test.each(['0.0.0.0', '::', '192.0.2.7', 'mayfly.example.com'])('%s without TLS is open to others', (host) =>
  expect(isOpen({ listen: { host, port: 8620 } })).toBe(true),
)

test.each([
  ['loopback', { listen: { host: '127.0.0.1', port: 8620 } }],
  ['loopback by name', { listen: { host: 'localhost', port: 8620 } }],
  ['loopback of IPv6', { listen: { host: '::1', port: 8620 } }],
  ['TLS of its own', { tls: { certFile: 'c', keyFile: 'k' } }],
  ['an issuer that has TLS', { issuer: 'https://mayfly.example.com' }],
  ['a proxy that is trusted', { trustedProxies: ['10.0.0.0/8'] }],
])('%s is not', (_, more) => expect(isOpen(more)).toBe(false))
