import fc from 'fast-check'
import { expect, test } from 'vitest'
import { watchCommands } from './commands.ts'
import { packet } from './packets.ts'

function sent(pieces: readonly Buffer[], hasQueryAttributes = false): Buffer {
  const change = watchCommands({ hasQueryAttributes })
  return Buffer.concat(pieces.flatMap((piece) => change(piece)))
}

function inPieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...places, bytes.length].map((end, at) => bytes.subarray(at === 0 ? 0 : places[at - 1], end))
}

const CHANGE_USER = Buffer.concat([Buffer.of(0x11), Buffer.from('root\0')])
const isRefusal = (bytes: Buffer) => bytes.includes('SIGNAL SQLSTATE')

test('commands go on as they are, and a change of the user as an error, however they are cut', () => {
  const command = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.constant(CHANGE_USER),
  )
  fc.assert(
    fc.property(
      fc.array(command, { maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (commands, cuts) => {
        const bytes = Buffer.concat(commands.map((payload) => packet(0, payload)))
        const expected = commands.map((payload) =>
          payload[0] === 0x11 ? sent([packet(0, CHANGE_USER)]) : packet(0, payload),
        )
        expect(sent(inPieces(bytes, cuts)).equals(Buffer.concat(expected))).toBe(true)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('a change of the user is dropped whole, also one of several packets', () => {
  const long = Buffer.alloc(0xffffff, 0x11)
  const bytes = Buffer.concat([packet(0, long), packet(1, Buffer.from('rest')), packet(0, Buffer.of(0x0e))])
  const out = sent([bytes])
  expect(isRefusal(out)).toBe(true)
  expect(out.subarray(-5)).toEqual(packet(0, Buffer.of(0x0e)))
  expect(out.length).toBeLessThan(200)
})

test('the second packet of a long command is no command', () => {
  const long = Buffer.alloc(0xffffff, 0x03)
  const bytes = Buffer.concat([packet(0, long), packet(1, CHANGE_USER), packet(0, Buffer.of(0x0e))])
  expect(sent([bytes.subarray(0, 100), bytes.subarray(100)]).equals(bytes)).toBe(true)
})

test('the message of the error is short enough for the server, and says its attributes where it reads them', () => {
  const [, text = ''] =
    /MESSAGE_TEXT = '([^']*)'$/.exec(sent([packet(0, CHANGE_USER)]).toString('latin1')) ?? []
  expect(text.length).toBeGreaterThan(20)
  expect(text.length).toBeLessThanOrEqual(128)
  expect(
    sent([packet(0, CHANGE_USER)], true)
      .subarray(4, 8)
      .toString('latin1'),
  ).toBe('\x03\0\x01S')
})

test.each([
  ['an answer that nobody asked for', packet(2, Buffer.from('files of the child'))],
  ['an empty command', packet(0, Buffer.alloc(0))],
])('refuses %s', (_, bytes) => {
  expect(() => sent([bytes, Buffer.of(0)])).toThrow('no command')
})
