import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { RequestBatch } from '../../client/wire.ts'
import type { RequestLine } from '../types.ts'
import { createRecorder } from './create-recorder.ts'

const LINE: RequestLine = {
  ...{ at: 0, protocol: 'http', method: 'GET', authority: 'api.example.com', path: '/', status: 200 },
  ...{ bytesSent: 0, bytesReceived: 0, durationMs: 1, decision: 'forwarded', reason: null, backend: null },
  ...{ credentialId: null, placeholder: null, redacted: 0 },
}

function open() {
  const batches: RequestBatch[] = []
  const replies: (() => void)[] = []
  const recorder = createRecorder({
    runs: {
      record: (_run, body, { signal } = {}) => {
        batches.push(body)
        return new Promise((resolve, reject) => {
          replies.push(resolve as () => void)
          signal?.addEventListener('abort', () => reject(signal.reason))
        })
      },
    },
    run: 'run_1',
    log: { warn: () => undefined },
    monotonic: () => performance.now(),
  })
  const record = (times: number) => {
    for (let n = 0; n < times; n += 1) recorder.record(LINE)
  }
  const answer = async () => {
    replies.shift()?.()
    await pause(0)
  }
  return { recorder, record, answer, sizes: () => batches.map(({ requests }) => requests.length) }
}

test('what comes while a batch is on its way waits until it is many, or its time has come', async () => {
  const { recorder, record, answer, sizes } = open()
  record(200)
  const [first = 0] = sizes()
  expect(first).toBeGreaterThan(100)
  record(10)
  await answer()
  expect(sizes()).toEqual([first])
  record(200)
  expect(sizes()).toHaveLength(2)
  const closed = recorder.close(5_000)
  for (let n = 0; n < 4; n += 1) await answer()
  await closed
  expect(sizes().reduce((sum, size) => sum + size)).toBe(410)
  expect(recorder.totals()).toMatchObject({ requests: 410, lost: 0 })
})
