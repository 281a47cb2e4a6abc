import { Check } from 'typebox/value'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { RequestBatch as BatchSchema } from '../../api/run-requests.ts'
import { pause } from '../../client/abort.ts'
import { MayflyError } from '../../client/errors.ts'
import type { RequestBatch } from '../../client/wire.ts'
import type { RequestLine } from '../types.ts'
import { createRecorder } from './create-recorder.ts'
import { lineOnWire, takeBatch } from './lines.ts'

const LINE: RequestLine = {
  ...{ at: Date.UTC(2026, 10, 27), protocol: 'http', method: 'GET', authority: 'api.example.com' },
  ...{ path: '/v1/x', status: 200, bytesSent: 0, bytesReceived: 10, durationMs: 3 },
  ...{ decision: 'injected', reason: null, backend: 'gateway', credentialId: 'cred_1' },
  ...{ placeholder: 'gateway', redacted: 0 },
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

type Answer = 'taken' | 'slowly' | 'never' | Error

function recording(...answers: Answer[]) {
  const sent: { readonly at: number; readonly body: RequestBatch }[] = []
  const warned: string[] = []
  const record = vi.fn(
    async (_run: string, body: RequestBatch, { signal }: { signal?: AbortSignal | undefined } = {}) => {
      sent.push({ at: Date.now(), body })
      const answer = answers.shift() ?? 'taken'
      if (answer instanceof Error) throw answer
      if (answer === 'slowly') await pause(50, undefined)
      if (answer === 'never')
        await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
      return undefined as never
    },
  )
  const log = { warn: (text: string) => warned.push(text) }
  const recorder = createRecorder({ runs: { record }, run: 'run_1', log, monotonic: () => Date.now() })
  return { recorder, sent, warned }
}

const busy = (retryAfterSeconds?: number) =>
  new MayflyError({ code: 'rate_limited', status: 429, message: 'Too many.', retryAfterSeconds })

test('a line is on its way within a second', async () => {
  const { recorder, sent } = recording()
  const began = Date.now()
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(sent).toHaveLength(1)
  expect((sent[0]?.at ?? 0) - began).toBeLessThan(1_000)
  expect(Check(BatchSchema, sent[0]?.body)).toBe(true)
})

test('a lost answer repeats the batch under its id, so that it counts once', async () => {
  const { recorder, sent } = recording(new Error('ECONNRESET'), new Error('ECONNRESET'))
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(sent).toHaveLength(3)
  expect(new Set(sent.map(({ body }) => body.batch)).size).toBe(1)
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(new Set(sent.map(({ body }) => body.batch)).size).toBe(2)
  expect(recorder.totals()).toMatchObject({ requests: 2, lost: 0 })
})

test('waits as long as the server asks', async () => {
  const { recorder, sent } = recording(busy(4))
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(sent).toHaveLength(2)
  expect((sent[1]?.at ?? 0) - (sent[0]?.at ?? 0)).toBeGreaterThanOrEqual(4_000)
})

test('what the server never takes is lost once, counted, and said once', async () => {
  const refused = () => new MayflyError({ code: 'gone', status: 410, message: 'The run has ended.' })
  const { recorder, sent, warned } = recording(refused(), refused())
  for (let round = 0; round < 2; round += 1) {
    recorder.record(LINE)
    await vi.advanceTimersByTimeAsync(1_000)
  }
  expect(sent).toHaveLength(2)
  expect(recorder.totals()).toMatchObject({ requests: 2, lost: 2 })
  expect(warned).toEqual(['requests could not be recorded: The run has ended.'])
})

test('says that it is behind once lines wait for too long, and no more once they are taken', async () => {
  const { recorder } = recording(...Array.from({ length: 20 }, () => busy(1)))
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(14_000)
  expect(recorder.whyBehind()).toBeUndefined()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(recorder.whyBehind()).toContain('has not taken the record')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(recorder.whyBehind()).toBeUndefined()
})

test('a server that takes less than is done is behind, too, before a line is lost', async () => {
  const { recorder } = recording(...Array.from({ length: 1_000 }, () => 'slowly' as const))
  while (recorder.whyBehind() === undefined && recorder.totals().requests < 1_000_000) {
    for (let n = 0; n < 100; n += 1) recorder.record(LINE)
    await vi.advanceTimersByTimeAsync(20)
  }
  expect(recorder.whyBehind()).toContain('has not taken the record')
  expect(recorder.totals().lost).toBe(0)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(recorder.whyBehind()).toBeUndefined()
})

test('a 404 that is not of the server, as of an ingress while it restarts, loses nothing', async () => {
  const absent = () => new MayflyError({ code: 'unexpected_reply', status: 404, message: 'Not Mayfly.' })
  const { recorder, sent } = recording(absent(), absent())
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(sent).toHaveLength(3)
  expect(recorder.totals().lost).toBe(0)
})

test('many lines go at once in batches of the size that the server takes, in their order', async () => {
  const { recorder, sent } = recording()
  for (let n = 0; n < 450; n += 1) recorder.record({ ...LINE, path: `/v1/${n}` })
  await vi.advanceTimersByTimeAsync(0)
  await recorder.close(5_000)
  expect(sent.map(({ body }) => body.requests.length)).toEqual([200, 200, 50])
  expect(sent.flatMap(({ body }) => body.requests.map(({ path }) => path))).toEqual(
    Array.from({ length: 450 }, (_, n) => `/v1/${n}`),
  )
})

test('lines that wait are bounded', async () => {
  const { recorder } = recording('never')
  for (let n = 0; n < 50_300; n += 1) recorder.record(LINE)
  expect(recorder.totals().lost).toBeGreaterThan(0)
  expect(recorder.totals().lost).toBeLessThanOrEqual(300)
})

test('the end sends what waits', async () => {
  const { recorder, sent } = recording()
  recorder.record(LINE)
  await recorder.close(5_000)
  expect(sent).toHaveLength(1)
  recorder.record(LINE)
  expect(recorder.totals()).toMatchObject({ requests: 2, lost: 1 })
})

test('the end does not wait for a server that is silent, and counts what it did not take', async () => {
  const { recorder } = recording('never')
  recorder.record(LINE)
  await vi.advanceTimersByTimeAsync(1_000)
  recorder.record(LINE)
  const closed = recorder.close(5_000)
  await vi.advanceTimersByTimeAsync(5_000)
  await closed
  expect(recorder.totals()).toMatchObject({ requests: 2, lost: 2 })
})

test.each([
  ['with spaces', 'GE T', 'a b', '/v1/a b'],
  ['with control characters', 'GET\r\n', 'x\u0000', '/\u001b[31m'],
  ['that no ASCII has', 'MÉTHODE', 'exämple', '/\u202e\ufeff\u{1f600}'],
  ['with halves of pairs', '\ud800', '\udfff', '/\ud83d'],
  ['that are too long', 'X'.repeat(99), 'é'.repeat(400), `/${'\u0000'.repeat(9_000)}`],
])('the server takes lines whose texts are %s', (_, method, authority, path) => {
  const { line } = lineOnWire({
    ...LINE,
    method,
    authority,
    path,
    status: 7_000,
    bytesSent: -1,
    durationMs: Number.NaN,
  })
  expect(Check(BatchSchema, { batch: '0'.repeat(26), requests: [line] })).toBe(true)
})

test('a batch has at most the bytes that the server takes', () => {
  const long = Array.from({ length: 200 }, () => lineOnWire({ ...LINE, path: `/${'x'.repeat(511)}` }))
  const { batch, rest } = takeBatch(long)
  expect(Buffer.byteLength(JSON.stringify({ batch: '0'.repeat(26), requests: batch }))).toBeLessThanOrEqual(
    65_536,
  )
  expect(batch.length + rest.length).toBe(200)
  expect(batch.length).toBeGreaterThan(50)
})
