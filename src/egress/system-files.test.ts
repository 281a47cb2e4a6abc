import { expect, it } from 'vitest'
import { sharedReads } from './system-files.ts'

/** Each reading ends when the test says so. */
function openReader() {
  const begun: { path: string; end(text: string): void; fail(error: Error): void }[] = []
  const read = sharedReads((path) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    begun.push({ path, end: resolve, fail: reject })
    return promise
  })
  return { read, begun }
}

it('one reading serves all who asked before it began', async () => {
  const { read, begun } = openReader()
  const first = read('tcp')
  const all = Array.from({ length: 100 }, () => read('tcp'))
  begun[0]?.end('first')
  expect(await first).toBe('first')
  await expect.poll(() => begun.length).toBe(2)
  begun[1]?.end('second')
  expect(new Set(await Promise.all(all))).toEqual(new Set(['second']))
  expect(begun).toHaveLength(2)
})

it('who asks while one is under way gets the next, whose text is newer', async () => {
  const { read, begun } = openReader()
  const early = read('tcp')
  await expect.poll(() => begun.length).toBe(1)
  const late = [read('tcp'), read('tcp')]
  const other = read('tcp6')
  await expect.poll(() => begun.map(({ path }) => path)).toEqual(['tcp', 'tcp6'])
  begun[0]?.end('old')
  begun[1]?.end('other')
  expect(await Promise.all([early, other])).toEqual(['old', 'other'])
  await expect.poll(() => begun.length).toBe(3)
  begun[2]?.end('new')
  expect(await Promise.all(late)).toEqual(['new', 'new'])
})

it('a reading that fails does not keep the next from being read', async () => {
  const { read, begun } = openReader()
  const failing = read('tcp')
  await expect.poll(() => begun.length).toBe(1)
  const next = read('tcp')
  begun[0]?.fail(new Error('gone'))
  await expect(failing).rejects.toThrow('gone')
  await expect.poll(() => begun.length).toBe(2)
  begun[1]?.end('text')
  expect(await next).toBe('text')
})
