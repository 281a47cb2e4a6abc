import { expect, it } from 'vitest'
import { cleanMessage, hiderOf } from './text.ts'

const SECRET = 'p"ss/w+rd é\nsecond line of a longer key'

it('hides a secret in every spelling that a library might use', () => {
  const hide = hiderOf([SECRET])
  for (const spelling of [
    SECRET,
    JSON.stringify({ password: SECRET }),
    `https://x/?p=${encodeURIComponent(SECRET)}`,
    `Basic ${Buffer.from(SECRET).toString('base64')}`,
    Buffer.from(SECRET).toString('base64url'),
    'second line of a longer key',
  ]) {
    const hidden = hide(`before ${spelling} after`)
    expect(hidden).toMatch(/^before .*\[redacted\].* after$/s)
    expect(hidden).not.toMatch(/second line|p"ss/)
  }
  expect(hiderOf(['abc', 'abcdef'])('abc abcdef')).toBe('abc [redacted]')
})

it('cuts after it has hidden', () => {
  const clean = cleanMessage(`${'x'.repeat(290)}topsecretvalue`, hiderOf(['topsecretvalue']))
  expect(clean).not.toContain('tops')
  expect(clean.length).toBeLessThanOrEqual(300)
  expect(cleanMessage('a\r\nb\u001b[31m\u202ec\u2028\ud800', (text) => text)).toBe('a b [31m c')
})
