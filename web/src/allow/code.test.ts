import { expect, test } from 'vitest'
import { codeOf, ownMachine } from './code.ts'

test.each(['BCDF-GHJK', 'bcdf-ghjk', ' bcdfghjk\n', 'B C D F G H J K', 'bcdf–ghjk', 'ｂｃｄｆ－ｇｈｊｋ'])(
  'takes %j as a code',
  (typed) => {
    expect(codeOf(typed)).toBe('BCDF-GHJK')
  },
)

test.each(['', 'BCDF', 'BCDF-GHJ', 'BCDF-GHJKL', 'BCDF_GHJK', 'BCDF-GHJ\u0301', 'ßßßßßßßß', '../../..'])(
  'does not send %j',
  (typed) => {
    expect(codeOf(typed)).toBe(undefined)
  },
)

test.each([
  'http://127.0.0.1:7/callback?code=mac_1&state=s',
  'http://[::1]:65535/callback?error=access_denied',
])('goes to %s', (address) => {
  expect(ownMachine(address)?.href).toBe(address)
})

test.each([
  'https://127.0.0.1:7/callback',
  'http://localhost:7/callback',
  'http://127.0.0.2:7/callback',
  'http://127.0.0.1.evil.example:7/callback',
  'http://127.0.0.1@evil.example:7/callback',
  'http://evil.example:7/callback?x=http://127.0.0.1:7/callback',
  'http://user@127.0.0.1:7/callback',
  'http://127.0.0.1/callback',
  'http://127.0.0.1:7/other',
  'http://[::ffff:127.0.0.1]:7/callback',
  'http://0.0.0.0:7/callback',
  'javascript:alert(1)',
  'data:text/html,x',
  '/callback',
  '',
])('never goes to %j', (address) => {
  expect(ownMachine(address)).toBe(undefined)
})
