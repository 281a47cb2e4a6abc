import { expect, it } from 'vitest'
import { unlessAborted } from './abort.ts'

it('waits no longer than the signal', async () => {
  const stop = new AbortController()
  const waiting = unlessAborted(new Promise(() => undefined), stop.signal)
  stop.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  expect(await unlessAborted(Promise.resolve(1), new AbortController().signal)).toBe(1)
})
