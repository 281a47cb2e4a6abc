import { expect, it } from 'vitest'
import { DeadlineError, unlessAborted, withDeadline } from './abort.ts'

it('waits no longer than the signal', async () => {
  const stop = new AbortController()
  const waiting = unlessAborted(new Promise(() => undefined), stop.signal)
  stop.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  expect(await unlessAborted(Promise.resolve(1), new AbortController().signal)).toBe(1)
})

it('does not wait for a signal that has aborted', async () => {
  const waiting = unlessAborted(Promise.resolve(1), AbortSignal.abort(new Error('gone')))
  await expect(waiting).rejects.toThrow('gone')
})

it('hands over what arrives too late, and only that', async () => {
  const late: number[] = []
  const stop = new AbortController()
  const { promise, resolve } = Promise.withResolvers<number>()
  const waiting = unlessAborted(promise, stop.signal, (result) => late.push(result))
  stop.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  resolve(1)
  await promise
  await unlessAborted(Promise.resolve(2), new AbortController().signal, (result) => late.push(result))
  const failed = unlessAborted(Promise.reject(new Error('no')), stop.signal, (result) => late.push(result))
  await expect(failed).rejects.toThrow('gone')
  expect(late).toEqual([1])
})

it('gives up at the deadline work that ignores its signal', async () => {
  await expect(withDeadline(5, () => new Promise(() => undefined))).rejects.toThrow(DeadlineError)
  expect(await withDeadline(5_000, async () => 1)).toBe(1)
})
