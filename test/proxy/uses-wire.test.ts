import { expect, test } from 'vitest'
import type { HttpUse, Place, Rule, Use } from '../../src/domain/use.ts'
import { presentUse } from '../../src/http/routes/present-uses.ts'
import { readUses } from '../../src/proxy/held/read-use.ts'

const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, n) => make(n))
const rule = (index: number): Rule => ({ methods: ['GET', 'PUT'], path: `/v1/${index}/**` })
const services = times(128, (index) => `service-${index}`)
const PLACES: readonly Place[] = [
  { in: 'header', name: 'authorization', field: 'token' },
  { in: 'basic' },
  { in: 'query', name: 'key' },
  { in: 'path' },
  { in: 'body', name: 'client_secret', maxBytes: 65_536 },
  { in: 'sigv4', field: 'secret', keyId: 'id', token: 'session', allow: services, deny: services },
]
const HTTP: HttpUse = {
  protocol: 'http',
  name: 'api',
  origin: 'https://api.example.com',
  local: false,
  ca: 'x'.repeat(32_768),
  accounts: ['www-data'],
  places: PLACES,
  allow: [{ ...rule(0), slashes: true, caseless: true, named: true }],
  deny: [],
}
const DATABASE: Use = {
  protocol: 'postgres',
  name: 'sql',
  host: 'db.example.com',
  port: 5432,
  local: true,
  tls: 'verify-full',
  accounts: ['postgres', '1001'],
  databases: ['shop'],
}
const sent = (uses: readonly Use[]): unknown => JSON.parse(JSON.stringify(uses.map(presentUse)))

test('the proxy reads a use as the server has it', () => {
  expect(readUses('orders', sent([HTTP, DATABASE]))).toEqual([HTTP, DATABASE])
})

test('what a kind says and what an administrator names fit into one reply', () => {
  const full = { ...HTTP, allow: times(512, rule), deny: times(512, rule) }
  const uses = [full, ...times(79, (index): HttpUse => ({ ...HTTP, name: `host-${index}` }))]
  expect(readUses('orders', sent(uses))).toEqual(uses)
})

test.each([[[{ ...HTTP, allow: times(513, rule) }]], [[{ ...HTTP, ca: 'x'.repeat(32_769) }]]])(
  'more than that is refused',
  (uses) => {
    expect(() => readUses('orders', sent(uses))).toThrow('orders')
  },
)

test.each([
  [undefined],
  [{}],
  [[{ ...HTTP, places: [], more: true }]],
  [[{ ...HTTP, places: [{ in: 'cookie' }] }]],
  [[{ ...HTTP, places: [], allow: [{ ...rule(0), anything: true }] }]],
])('a form that this version does not know is refused: %#', (uses) => {
  expect(() => readUses('orders', uses)).toThrow('orders')
})
