import { describe, expect, test } from 'vitest'
import { formatCredential, parseAttributes } from './credential-protocol.ts'

test('reads a request up to the empty line', () => {
  const asked = parseAttributes(
    'protocol=https\nhost=a.example\npath=o/r=x.git\ncapability[]=authtype\nwwwauth[]=Basic realm="x"\n\nhost=evil.example\n',
  )
  expect([...asked]).toEqual([
    ['protocol', 'https'],
    ['host', 'a.example'],
    ['path', 'o/r=x.git'],
  ])
  expect(parseAttributes('').size).toBe(0)
  expect(parseAttributes('=x\nnothing\n').size).toBe(0)
})

describe('the answer', () => {
  const good = { username: 'x-access-token', password: 'a=b c', expiresAt: 1_760_000_000_999 }
  test('is in the format of git', () => {
    expect(formatCredential(good)).toBe(
      'username=x-access-token\npassword=a=b c\npassword_expiry_utc=1760000000',
    )
  })
  test.each([
    { password: 'a\nhost=evil.example' },
    { password: 'a\rb' },
    { password: 'a\0b' },
    { password: '' },
    { username: 'a\npassword=b' },
    { username: '' },
  ])('is refused with %j', (wrong) => {
    expect(() => formatCredential({ ...good, ...wrong })).toThrow(
      expect.objectContaining({ code: 'not_for_git' }),
    )
  })
})
