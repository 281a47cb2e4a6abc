import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  encodeTail,
  encodeTime,
  hexOf,
  ID_PREFIX,
  type IdKind,
  isId,
  lowestBodyAt,
  timeOfBody,
} from './ids.ts'

const time = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const bytes = fc.uint8Array({ minLength: 13, maxLength: 13 })
const counter = fc.integer({ min: 0, max: 4_095 })
const KINDS = Object.keys(ID_PREFIX) as IdKind[]

test('every id that is made is one, of its own kind alone', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...KINDS),
      fc.constantFrom(...KINDS),
      time,
      counter,
      bytes,
      (kind, other, ms, n, random) => {
        const id = ID_PREFIX[kind] + encodeTime(ms) + encodeTail(n, random)
        expect(isId(other, id)).toBe(kind === other)
      },
    ),
  )
})

test('the order of text is the order of time, then of the counter', () => {
  fc.assert(
    fc.property(time, time, (a, b) => Math.sign(a - b) === compare(encodeTime(a), encodeTime(b))),
    { numRuns: 1_000 },
  )
  fc.assert(
    fc.property(counter, counter, bytes, bytes, (a, b, left, right) => {
      fc.pre(a !== b)
      return Math.sign(a - b) === compare(encodeTail(a, left), encodeTail(b, right))
    }),
  )
})

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

test('the 128 bits are a UUIDv7 (RFC 9562 §5.7) with that time and counter', () => {
  const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
  fc.assert(
    fc.property(time, counter, bytes, (ms, n, random) => {
      const body = encodeTime(ms) + encodeTail(n, random)
      const bits = [...body].reduce((sum, char) => sum * 32n + BigInt(alphabet.indexOf(char)), 0n)
      expect(bits >> 80n).toBe(BigInt(ms))
      expect((bits >> 76n) & 15n).toBe(7n)
      expect((bits >> 64n) & 4_095n).toBe(BigInt(n))
      expect((bits >> 62n) & 3n).toBe(2n)
    }),
  )
})

test('all 62 random bits count', () => {
  const seen = new Set<string>()
  for (let index = 0; index < 13; index += 1) {
    for (let bit = 0; bit < (index === 0 ? 2 : 5); bit += 1) {
      const random = new Uint8Array(13)
      random[index] = 1 << bit
      seen.add(encodeTail(0, random))
    }
  }
  expect(seen.size).toBe(62)
})

test('bytes are taken from the offset', () => {
  const random = Uint8Array.from({ length: 26 }, (_, index) => index)
  expect(encodeTail(1, random, 13)).toBe(encodeTail(1, random.slice(13)))
})

test('the lowest body of a time is below every id of it and above every earlier one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 48 - 1 }), counter, bytes, (ms, n, random) => {
      const tail = encodeTail(n, random)
      return lowestBodyAt(ms) < encodeTime(ms) + tail && lowestBodyAt(ms) > encodeTime(ms - 1) + tail
    }),
  )
  expect(lowestBodyAt(-5)).toBe('0'.repeat(26))
  expect(lowestBodyAt(Number.POSITIVE_INFINITY)).toBe(lowestBodyAt(2 ** 48 - 1))
})

const GOOD = `cred_${'0'.repeat(26)}`
test.each(
  [
    [
      '',
      'cred_',
      GOOD.slice(0, -1),
      `${GOOD}0`,
      `${GOOD}\n`,
      ` ${GOOD}`,
      GOOD.toUpperCase(),
      GOOD.replace('0', '8'),
      `${GOOD.slice(0, -1)}u`,
    ],
    [
      `${GOOD.slice(0, -1)}i`,
      `${GOOD.slice(0, -1)}l`,
      `${GOOD.slice(0, -1)}o`,
      `${GOOD.slice(0, -1)}%`,
      GOOD.replace('cred', 'CRED'),
    ],
    [`${GOOD}/../x`, `${GOOD}\0`, 'x'.repeat(1_000_000), `${GOOD.slice(0, -1)}０`],
  ].flat(),
)('refuses %.60j', (text) => {
  expect(isId('credential', text)).toBe(false)
})
test('accepts', () => expect(isId('credential', GOOD)).toBe(true))

test('the hexadecimal digits of an id are its bits', () => {
  const value = (id: string) =>
    [...id].reduce((sum, digit) => sum * 32n + BigInt('0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit)), 0n)
  fc.assert(
    fc.property(fc.constantFrom(...KINDS), time, counter, bytes, (kind, ms, n, random) => {
      const body = encodeTime(ms) + encodeTail(n, random)
      expect(hexOf(kind, ID_PREFIX[kind] + body)).toBe(value(body).toString(16).padStart(32, '0'))
    }),
  )
})

test('reads the time of an id back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (ms) => timeOfBody(lowestBodyAt(ms)) === ms),
  )
})
