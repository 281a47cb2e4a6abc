import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { firstToken, requestFor } from './workload-message.ts'

test('a request is read as it was meant', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (audience) => {
      const reader = new BinaryReader(requestFor(audience))
      expect(reader.tag()).toEqual([1, 2])
      expect(reader.string()).toBe(audience)
      expect(reader.pos).toBe(reader.len)
    }),
  )
})

const svidOf = (token: string, hint: string) =>
  new BinaryWriter().tag(1, 2).string('spiffe://td/x').tag(3, 2).string(hint).tag(2, 2).string(token).finish()

test('the first token of a response is found', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20_000 })
  fc.assert(
    fc.property(text, text, (token, other) => {
      const response = new BinaryWriter().tag(1, 2).bytes(svidOf(token, other))
      response.tag(1, 2).bytes(svidOf(other, token))
      expect(firstToken(Buffer.from(response.finish()))).toBe(token)
    }),
    { numRuns: 50 },
  )
})

test('bytes of any kind end in a token or in none', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(['string', 'undefined']).toContain(typeof firstToken(Buffer.from(bytes)))
    }),
  )
})

test.each([
  ['nothing', []],
  ['a length beyond the end', [0x0a, 0x05, 0x12]],
  ['a length of five bytes', [0x0a, 0x80, 0x80, 0x80, 0x80, 0x00]],
  ['another wire type', [0x08, 0x01]],
  ['a message without a token', [0x0a, 0x00]],
])('%s holds none', (_, bytes) => {
  expect(firstToken(Buffer.from(bytes))).toBeUndefined()
})
