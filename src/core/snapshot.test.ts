import { expect, it } from 'vitest'
import { createSnapshot } from './snapshot.ts'

/** A reading is over when it is let go, with what was there when it began. */
function store() {
  const readings: ((value?: unknown) => void)[] = []
  let content = 'first'
  let changedAt = 1
  const load = async () => {
    const read = content
    await new Promise((resolve) => readings.push(resolve))
    return read
  }
  const snapshot = createSnapshot(load, () => changedAt)
  const change = (value: string) => {
    content = value
    changedAt += 1
  }
  return { snapshot, readings, change }
}

it('reads once for all callers of one generation, and keeps the value for it', async () => {
  const { snapshot, readings } = store()
  const asked = [snapshot.at(1), snapshot.at(1)]
  expect(readings).toHaveLength(1)
  readings[0]?.()
  expect(await Promise.all(asked)).toEqual(['first', 'first'])
  expect(snapshot.at(1)).toBe('first')
})

it('keeps a value while the generation rises for other reasons', async () => {
  const { snapshot, readings, change } = store()
  const first = snapshot.at(1)
  readings[0]?.()
  await first
  expect(snapshot.at(9)).toBe('first')
  change('second')
  void snapshot.at(10)
  expect(readings).toHaveLength(2)
})

it('gives no reading that began before the generation that the caller has seen', async () => {
  const { snapshot, readings, change } = store()
  const early = snapshot.at(1)
  change('second')
  const late = snapshot.at(2)
  for (const end of readings) end()
  expect([await early, await late]).toEqual(['first', 'second'])
})

it('keeps the newer of two readings, whichever ends last', async () => {
  const { snapshot, readings, change } = store()
  const early = snapshot.at(1)
  change('second')
  const late = snapshot.at(2)
  readings[1]?.()
  await late
  readings[0]?.()
  expect(await early).toBe('first')
  expect(snapshot.at(2)).toBe('second')
  expect(snapshot.at(1)).toBe('second')
})

it('reads again after a failed reading', async () => {
  let fails = true
  const load = async () => {
    if (fails) throw new Error('away')
    return 'there'
  }
  const snapshot = createSnapshot(load, () => 1)
  await expect(snapshot.at(1)).rejects.toThrow('away')
  fails = false
  expect(await snapshot.at(1)).toBe('there')
})
