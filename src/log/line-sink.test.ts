import { expect, test } from 'vitest'
import { openLineSink } from './line-sink.ts'

/** A descriptor whose writes do what the list says in turn: take all, take some bytes, or fail with a code. */
function scripted(steps: (string | number)[]) {
  const taken: string[] = []
  const lost: number[] = []
  const write = (_: number, bytes: Uint8Array, offset = 0): number => {
    const step = steps.length > 1 ? steps.shift() : steps[0]
    if (typeof step === 'string' && step !== 'all') throw Object.assign(new Error(step), { code: step })
    const part = bytes.subarray(offset, step === 'all' ? undefined : offset + Number(step))
    taken.push(Buffer.from(part).toString())
    return part.length
  }
  const sink = openLineSink(1, { write: write as never, onLost: (count) => lost.push(count) })
  return { sink, lost, text: () => taken.join('') }
}

test('writes what a descriptor takes in pieces', () => {
  const { sink, text, lost } = scripted([2, 1, 'all'])
  sink.write('one\n')
  sink.write('two\n')
  expect(text()).toBe('one\ntwo\n')
  expect(lost).toEqual([])
})

test.each(['EIO', 'EPIPE', 'ENOSPC', 'EBADF'])('drops lines on %s, and says how many once it can', (code) => {
  const { sink, text, lost } = scripted([code, code, 'all'])
  sink.write('one\n')
  sink.write('two\n')
  expect(lost).toEqual([])
  sink.write('three\n')
  sink.write('four\n')
  expect(text()).toBe('three\nfour\n')
  expect(lost).toEqual([2])
})

test('a line that was cut off does not run into the next one', () => {
  const { sink, text } = scripted([2, 'ENOSPC', 'ENOSPC', 'all'])
  sink.write('one\n')
  sink.write('two\n')
  sink.write('three\n')
  expect(text()).toBe('on\nthree\n')
})

test('waits for a reader that is busy', () => {
  const { sink, text, lost } = scripted(['EAGAIN', 1, 'EAGAIN', 'all'])
  sink.write('one\n')
  expect(text()).toBe('one\n')
  expect(lost).toEqual([])
})

test('waits a second in all for a reader that takes nothing', () => {
  const { sink, text } = scripted(['EAGAIN'])
  const since = Date.now()
  for (let n = 0; n < 50; n++) sink.write('line\n')
  expect(text()).toBe('')
  expect(Date.now() - since).toBeLessThan(20_000)
})
