import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import { RequestBatch } from '../../api/run-requests.ts'
import type { RequestLine } from '../types.ts'
import { newBatchId } from './batch-id.ts'
import { lineOnWire, takeBatch } from './lines.ts'

const LINE: RequestLine = {
  at: 1_795_000_000_000,
  protocol: 'http',
  method: 'GET',
  authority: 'api.example.com',
  path: '/orders/*',
  status: 200,
  bytesSent: 0,
  bytesReceived: 12,
  durationMs: 3,
  decision: 'injected',
  reason: null,
  backend: 'orders',
  credentialId: 'cred_1',
  placeholder: 'orders.token',
  redacted: 0,
}
const batch = Compile(RequestBatch)
const isTaken = (line: RequestLine) => batch.Check({ batch: newBatchId(), requests: [lineOnWire(line).line] })

test.each(['GE T', 'É', '\u0000', 'a\nb', '\ud800', '😀'.repeat(300), '"\\'.repeat(300), ''])(
  'the server takes a line whatever the child sent: %j',
  (text) => {
    expect(isTaken({ ...LINE, method: text, authority: text, path: text })).toBe(true)
  },
)

test('what is visible stays as it is, and the rest is escaped', () => {
  expect(lineOnWire(LINE).line).toMatchObject({ method: 'GET', path: '/orders/*' })
  expect(lineOnWire({ ...LINE, path: '/é b' }).line.path).toBe('/%C3%A9%20b')
})

test.each([
  { ...LINE },
  { ...LINE, path: '/"\\"\\', authority: '"', reason: '\\' },
  { ...LINE, bytesSent: Number.MAX_SAFE_INTEGER, bytesReceived: 1_000, durationMs: 999, status: 9_999 },
  {
    ...LINE,
    protocol: 'postgres' as const,
    decision: 'forwarded' as const,
    method: null,
    path: null,
    backend: null,
  },
  { ...LINE, credentialId: null, placeholder: null, method: 'x'.repeat(99), path: 'é'.repeat(999) },
])('no line is longer than it says: %j', (line) => {
  const wire = lineOnWire(line)
  expect(JSON.stringify(wire.line).length).toBeLessThan(wire.bytes)
})

test('a batch is as long as its bytes and the server allow', () => {
  const lines = Array.from({ length: 500 }, () => lineOnWire({ ...LINE, path: `/${'"'.repeat(400)}` }))
  const { batch: first, rest } = takeBatch(lines)
  expect(first.length + rest.length).toBe(500)
  expect(Buffer.byteLength(JSON.stringify(first))).toBeLessThan(60_000)
  expect(takeBatch(Array.from({ length: 500 }, () => lineOnWire(LINE))).batch.length).toBeLessThanOrEqual(200)
})
