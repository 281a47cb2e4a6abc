import { expect, test, vi } from 'vitest'
import { encodeTime, ID_PREFIX, type IdKind, isId } from '../domain/ids.ts'
import { createIdSource } from './new-id.ts'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const START = Date.UTC(2026, 10, 1)

/** The 128 bits of a body, read independently of the encoder. */
function decode(body: string): {
  ms: number
  version: number
  counter: number
  variant: number
  random: bigint
} {
  let value = 0n
  for (const character of body) value = value * 32n + BigInt(ALPHABET.indexOf(character))
  expect(value < 2n ** 128n).toBe(true)
  return {
    ms: Number(value >> 80n),
    version: Number((value >> 76n) & 15n),
    counter: Number((value >> 64n) & 4095n),
    variant: Number((value >> 62n) & 3n),
    random: value & (2n ** 62n - 1n),
  }
}

function isSortedAndUnique(bodies: readonly string[]): boolean {
  return bodies.every((body, index) => index === 0 || (bodies[index - 1] ?? '') < body)
}

test('200,000 ids in one go are sorted and unique', () => {
  const source = createIdSource(Date.now)
  const bodies = Array.from({ length: 200_000 }, () => source.body())
  expect(isSortedAndUnique(bodies)).toBe(true)
})

test('they stay so while the clock stands still, and borrow later ms as the counter runs out', () => {
  const source = createIdSource(() => START)
  const bodies = Array.from({ length: 20_000 }, () => source.body())
  expect(isSortedAndUnique(bodies)).toBe(true)
  const lastMs = decode(bodies.at(-1) ?? '').ms
  expect(lastMs).toBeGreaterThanOrEqual(START + 4)
  expect(lastMs).toBeLessThanOrEqual(START + 10)
})

test('they stay so across a clock that goes back, and follow it once it is ahead again', () => {
  let now = START
  const source = createIdSource(() => now)
  const bodies: string[] = []
  for (const step of [0, 5, -3_600_000, -1, 3_600_000, 0.4, 0.4, 0.4, -0.9, 1]) {
    now += step
    for (let count = 0; count < 300; count += 1) bodies.push(source.body())
  }
  expect(isSortedAndUnique(bodies)).toBe(true)
  now = START + 86_400_000
  const later = source.body()
  expect(later > (bodies.at(-1) ?? '')).toBe(true)
  expect(later.startsWith(encodeTime(now))).toBe(true)
})

test('a clock that gives nonsense cannot break the order or the form', () => {
  let now = START
  const source = createIdSource(() => now)
  const bodies = [source.body()]
  for (const odd of [Number.NaN, -1, 0, Number.NEGATIVE_INFINITY, 1e300, Number.POSITIVE_INFINITY]) {
    now = odd
    bodies.push(source.body())
  }
  expect(isSortedAndUnique(bodies)).toBe(true)
  for (const body of bodies) expect(decode(body).version).toBe(7)
})

test('the bits are those of a UUIDv7, and a counter starts below 2048', () => {
  let now = START
  const source = createIdSource(() => now)
  const starts = new Set<number>()
  let ones = 0n
  let zeros = 0n
  for (let index = 0; index < 5_000; index += 1) {
    now += 1
    const bits = decode(source.body())
    expect(bits.ms).toBe(now)
    expect(bits.version).toBe(7)
    expect(bits.variant).toBe(2)
    expect(bits.counter).toBeLessThan(2_048)
    starts.add(bits.counter)
    ones |= bits.random
    zeros |= ~bits.random & (2n ** 62n - 1n)
  }
  expect(starts.size).toBeGreaterThan(1_000)
  // Every one of the 62 random bits has been seen both ways.
  expect(ones).toBe(2n ** 62n - 1n)
  expect(zeros).toBe(2n ** 62n - 1n)
})

test('the counter grows by one within a ms', () => {
  const source = createIdSource(() => START)
  const first = decode(source.body()).counter
  for (let step = 1; step < 1_000; step += 1) expect(decode(source.body()).counter).toBe(first + step)
})

test('every kind gets its prefix', () => {
  const source = createIdSource(Date.now)
  for (const kind of Object.keys(ID_PREFIX) as IdKind[]) expect(isId(kind, source.id(kind))).toBe(true)
})

test('used randomness is wiped', async () => {
  const crypto = await import('node:crypto')
  const pools: Buffer[] = []
  vi.resetModules()
  vi.doMock('node:crypto', () => ({
    randomFillSync: (pool: Buffer) => {
      pools.push(pool)
      return crypto.randomFillSync(pool)
    },
  }))
  const fresh = await import('./new-id.ts')
  vi.doUnmock('node:crypto')
  const source = fresh.createIdSource(() => START)
  for (let count = 0; count < 100; count += 1) source.body()
  // 100 tails of 13 bytes, and the counter's 2.
  const used = 100 * 13 + 2
  expect(pools[0]?.subarray(0, used).every((byte) => byte === 0)).toBe(true)
  expect(pools[0]?.subarray(used).some((byte) => byte !== 0)).toBe(true)
})
