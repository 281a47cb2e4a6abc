import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeRequest } from './requests.ts'
import { translate } from './translate.ts'
import { watchRequests } from './watch-requests.ts'

const LOGIN = { username: 'mf', password: 'the-secret', placeholder: 'the-placeholder' }

/** What goes on of these pieces, and that nothing of it is held back at the end of a request. */
function sent(pieces: readonly Buffer[]): string {
  const change = watchRequests((parts) => translate(parts, LOGIN))
  return Buffer.concat(pieces.flatMap((piece) => change(piece))).toString('latin1')
}

function inPieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...places, bytes.length].map((end, at) => bytes.subarray(at === 0 ? 0 : places[at - 1], end))
}

const word = fc.oneof(
  fc.constantFrom(
    'AUTH',
    'auth',
    'HELLO',
    'RESET',
    'GET',
    'the-placeholder',
    'the-secret',
    '*3\r\n',
    '$4\r\nAUTH\r\n',
    '',
    'x',
  ),
  fc.string({ maxLength: 30 }),
)
const request = fc.array(word, { minLength: 1, maxLength: 6 })

test('every request goes on as it was, or as it was translated, however it is cut', () => {
  fc.assert(
    fc.property(
      fc.array(request, { maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (requests, cuts) => {
        const bytes = Buffer.concat(requests.map(encodeRequest))
        const expected = requests.map((parts) =>
          /^(auth|hello|reset)$/i.test(parts[0] ?? '')
            ? translate(
                parts.map((part) => Buffer.from(part)),
                LOGIN,
              )
            : encodeRequest(parts),
        )
        expect(sent(inPieces(bytes, cuts))).toBe(Buffer.concat(expected).toString('latin1'))
      },
    ),
    { numRuns: 3_000 },
  )
})

test('no login goes on with the placeholder, and only a right one with the secret', () => {
  fc.assert(
    fc.property(fc.constantFrom('AUTH', 'hello', 'Reset'), fc.array(word, { maxLength: 6 }), (name, rest) => {
      const parts = [name, ...rest].map((part) => Buffer.from(part))
      const made = translate(parts, LOGIN).toString()
      expect(made).not.toContain('the-placeholder')
      if (made.includes('the-secret') && !rest.includes('the-secret'))
        expect(rest).toContain('the-placeholder')
    }),
    { numRuns: 3_000 },
  )
})

test('what is no request is refused, and never more than a login is held back', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (pieces) => {
      try {
        sent(pieces.map((piece) => Buffer.from(piece)))
      } catch (error) {
        expect(error).toMatchObject({ name: 'Refusal', code: 'bad_startup' })
      }
    }),
    { numRuns: 3_000 },
  )
})

test('a value that is long goes on as it arrives', () => {
  const change = watchRequests((parts) => translate(parts, LOGIN))
  const bytes = encodeRequest(['SET', 'k', 'x'.repeat(1_000_000)])
  const half = bytes.subarray(0, 500_000)
  expect(Buffer.concat([...change(half)])).toEqual(half)
  expect(Buffer.concat([...change(bytes.subarray(500_000))])).toEqual(bytes.subarray(500_000))
})
