import { once } from 'node:events'
import { Readable } from 'node:stream'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createRules } from '../../src/proxy/rules/decide.ts'
import { openGate } from '../../src/proxy/traffic/search-encoded.ts'
import { askThrough } from './traffic-clients.ts'
import {
  heldFake,
  httpUse,
  leadingTo,
  PLACEHOLDER,
  type TrafficWorld,
  trafficWorld,
} from './traffic-world.ts'

const held = heldFake('api', [httpUse('https://api.test')])
const { search } = createRules([held])
const CODINGS = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const

let world: TrafficWorld
let url: string
beforeAll(async () => {
  world = trafficWorld([held], {
    names: { 'other.test': ['203.0.113.5'] },
    connect: leadingTo({ '203.0.113.5': 1 }),
  })
  url = (await world.traffic.openForward()).url
})
afterAll(() => world.close())

/** What goes on, and what was told. */
async function through(encoding: string, pieces: readonly Buffer[]) {
  const told = { onFound: vi.fn(), onFault: vi.fn() }
  const opened = openGate(encoding, search, told)
  if (opened === null) throw new Error('not known')
  opened.takeFrom(Readable.from(pieces))
  let out = ''
  opened.gate.on('data', (chunk: Buffer) => {
    out += chunk.toString('latin1')
  })
  await once(opened.gate, 'close')
  return { out, found: told.onFound.mock.calls.length, faults: told.onFault.mock.calls.length }
}

const inPieces = (bytes: Buffer, size: number) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )

test.each(CODINGS)('%s: a body without a placeholder goes on byte for byte', async (coding, compress) => {
  const bytes = compress(Buffer.from('0123456789'.repeat(50_000)))
  for (const size of [7, 100_000]) {
    expect(await through(coding, inPieces(bytes, size))).toEqual({
      out: bytes.toString('latin1'),
      found: 0,
      faults: 0,
    })
  }
})

test.each(CODINGS)(
  '%s: a placeholder is found, and the piece that ends it does not go on',
  async (coding, compress) => {
    const bytes = compress(Buffer.from(`${'x'.repeat(100_000)}${PLACEHOLDER}`))
    for (const size of [3, 100_000]) {
      const { out, found } = await through(coding, inPieces(bytes, size))
      expect(found).toBe(1)
      expect(out.length).toBeLessThan(bytes.length)
    }
  },
)

test.each(CODINGS)('%s: what follows the end, or is broken, does not pass', async (coding, compress) => {
  const bytes = compress(Buffer.from('hello'))
  for (const pieces of [
    [bytes, Buffer.from('more')],
    [Buffer.concat([bytes, Buffer.from('more')])],
    [bytes.subarray(0, -2)],
    [Buffer.from('hello')],
  ]) {
    const { found, faults } = await through(coding, pieces)
    expect({ found, faults }).toEqual({ found: 0, faults: 1 })
  }
})

test.each(CODINGS)('%s: two bodies after one another are both read', async (coding, compress) => {
  const pieces = [compress(Buffer.from('hello')), compress(Buffer.from(PLACEHOLDER))]
  const { found, faults } = await through(coding, pieces)
  expect(found + faults).toBe(1)
})

test('a coding that is not known, or two, is refused', () => {
  const told = { onFound: vi.fn(), onFault: vi.fn() }
  for (const coding of ['snappy', 'gzip,gzip', 'x']) expect(openGate(coding, search, told)).toBeNull()
})

test.each([
  ['gzip', gzipSync(`{"key": "${PLACEHOLDER}"}`), 403, 'proxy_elsewhere'],
  ['snappy', Buffer.from('anything'), 415, 'proxy_bad_encoding'],
  ['gzip, br', Buffer.from('anything'), 415, 'proxy_bad_encoding'],
  ['gzip', Buffer.from('not gzip'), 415, 'proxy_bad_encoding'],
  // The upstream is not there: it was asked.
  ['gzip', gzipSync('harmless'), 502, 'proxy_unreachable'],
] as const)('%s to another authority over the wire: %#', async (coding, body, status, code) => {
  const options = { method: 'POST', path: '/', headers: { 'content-encoding': coding } }
  const reply = await askThrough(url, 'other.test:443', { ca: world.certificate }, options, body)
  expect(reply.body).toContain(code)
  expect(reply.status).toBe(status)
})
