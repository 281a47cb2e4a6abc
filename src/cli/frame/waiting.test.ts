import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createOutput } from './output.ts'
import { whileWaiting } from './waiting.ts'

const CLEARED = '\r\x1b[2K'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

function terminal() {
  let text = ''
  const stream = Object.assign(
    new Writable({
      write: (chunk, _, done) => {
        text += String(chunk)
        done()
      },
    }),
    { isTTY: true, columns: 80 },
  )
  return { out: createOutput({ stdout: stream, stderr: stream, env: {} }, false), text: () => text }
}

test('says what one waits for once it takes a second, and clears it', async () => {
  const { out, text } = terminal()
  const work = Promise.withResolvers<string>()
  const waited = whileWaiting({ out, now: Date.now }, 'Waiting for shop', work.promise)
  vi.advanceTimersByTime(999)
  expect(text()).toBe('')
  vi.advanceTimersByTime(2_001)
  expect(text()).toMatch(/Waiting for shop: 3 s$/)
  work.resolve('done')
  expect(await waited).toBe('done')
  expect(text().endsWith(`3 s${CLEARED}`)).toBe(true)
  const before = text()
  vi.advanceTimersByTime(5_000)
  expect(text()).toBe(before)
})

test('passes a failure on, and clears the line', async () => {
  const { out, text } = terminal()
  const work = Promise.withResolvers<never>()
  const waited = whileWaiting({ out, now: Date.now }, 'Waiting', work.promise)
  vi.advanceTimersByTime(1_000)
  work.reject(new Error('no'))
  await expect(waited).rejects.toThrow('no')
  expect(text().endsWith(CLEARED)).toBe(true)
})
