import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRedaction } from './redact.ts'

function redacted(secrets: readonly string[], chunks: readonly (string | Buffer)[]): string {
  const redaction = createRedaction()
  for (const secret of secrets) redaction.add(secret)
  const stream = redaction.stream()
  return Buffer.concat([...chunks.map((chunk) => stream.push(Buffer.from(chunk))), stream.end()]).toString()
}

const SECRET = `p/w"'d +ü\\100%&`

describe('redacts a secret', () => {
  test.each([
    ['plain', SECRET],
    ['in a URL', encodeURIComponent(SECRET)],
    [
      'in a URL, codes in lower case',
      encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase()),
    ],
    ['in a form', encodeURIComponent(SECRET).replaceAll('%20', '+')],
    ['in JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['in a shell word', SECRET.replaceAll("'", `'\\''`)],
    ['in hex', Buffer.from(SECRET).toString('hex')],
    ['in base64', Buffer.from(SECRET).toString('base64').replace(/=+$/, '').slice(0, -1)],
  ])('%s', (_, form) => {
    expect(redacted([SECRET], [`a${form}z`])).toBe('a[redacted]z')
  })

  test.each(['', 'u', 'us', 'user:', 'someone:'])('in base64 after %o', (before) => {
    const text = Buffer.from(`${before}correct horse battery`).toString('base64')
    const left = redacted(['correct horse battery'], [`Basic ${text}\n`])
    expect(left).toMatch(/^Basic .{0,12}\[redacted\].{0,4}\n$/)
  })

  test('byte by byte, in two streams at once', () => {
    const redaction = createRedaction()
    redaction.add('hunter2-hunter2')
    const [one, two] = [redaction.stream(), redaction.stream()]
    let said = ''
    for (const byte of Buffer.from('a hunter2-hunter2 b')) {
      said += one.push(Buffer.of(byte))
      expect(two.push(Buffer.from('x')).toString()).toBe('x')
    }
    expect(said + one.end()).toBe('a [redacted] b')
  })

  test('each line of a secret with several', () => {
    const key = '-----BEGIN KEY-----\nAAAABBBBCCCCDDDDEEEE\nFFFFGGGGHHHHIIIIJJJJ\n-----END KEY-----'
    expect(redacted([key], [`1 ${key}`])).toBe('1 [redacted]')
    expect(redacted([key], ['AAAABBBBCCCCDDDDEEEE\r\nFFFFGGGGHHHHIIIIJJJJ'])).toBe('[redacted]\r\n[redacted]')
  })

  test('the longer of two that overlap', () => {
    const secrets = ['password1', 'password1234', '{"p":"password1"}']
    expect(redacted(secrets, ['password1234 {"p":"pass', 'word1"} password1!'])).toBe(
      '[redacted] [redacted] [redacted]!',
    )
  })

  test('not a part that is never completed', () => {
    expect(redacted(['{"p":"password1"}', 'password1'], ['{"p":"pass', 'word1", no'])).toBe(
      '{"p":"[redacted]", no',
    )
  })

  test('that is added later', () => {
    const redaction = createRedaction()
    const stream = redaction.stream()
    expect(stream.push(Buffer.from('second-secret ')).toString()).toBe('second-secret ')
    expect(redaction.add('second-secret')).toBe(true)
    expect(stream.push(Buffer.from('second-secret')).toString()).toBe('[redacted]')
  })
})

test('does not search for short secrets', () => {
  const redaction = createRedaction()
  expect([redaction.add('1234567'), redaction.add('')]).toEqual([false, false])
  expect(redaction.stream().push(Buffer.from('1234567')).toString()).toBe('1234567')
})

test('passes everything else through unchanged and at once, even binary data', () => {
  const redaction = createRedaction()
  redaction.add('zzzzzzzzzz')
  const bytes = Buffer.from([0, 255, 254, 10, 128])
  expect(redaction.stream().push(bytes)).toEqual(bytes)
})

test('gives the same result however the output is cut', () => {
  const piece = fc.oneof(fc.constantFrom('secret-a', 'secret-ab', 'secret-', 'aa', 'ab', '\n'), fc.string())
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat(40)), (pieces, cuts) => {
      const whole = Buffer.from(pieces.join(''))
      const chunks: Buffer[] = []
      let from = 0
      for (const cut of cuts) {
        chunks.push(whole.subarray(from, from + cut))
        from += cut
      }
      chunks.push(whole.subarray(from))
      const secrets = ['secret-a', 'secret-ab', 'aaaaaaaab']
      const said = redacted(secrets, chunks)
      expect(said).toBe(redacted(secrets, [whole]))
      for (const secret of secrets) expect(said).not.toContain(secret)
    }),
  )
})
