import { expect, it } from 'vitest'
import { plainText } from './plain-text.ts'

it.each([
  ['deploy the shop', 'deploy the shop'],
  ['a\r\nBcc: all@example.com', 'a Bcc: all@example.com'],
  ['a\n\n\tb', 'a b'],
  ['\u001b[31mred\u0007', '\ufffd[31mred\ufffd'],
  ['\u202egnp.exe', '\ufffdgnp.exe'],
  ['a\u0085b\u2028c\u2029d', 'a\ufffdb\ufffdc\ufffdd'],
  ['\ud800x', '\ufffdx'],
  ['\u{e0041}tag', '\ufffdtag'],
  ['👩\u200d💻', '👩\u200d💻'],
  ['', ''],
])('shows %j as %j', (given, shown) => {
  expect(plainText(given, 80)).toBe(shown)
})

it('cuts long text at a character', () => {
  expect(plainText('👍'.repeat(50), 10)).toBe(`${'👍'.repeat(9)}…`)
  expect(plainText('x'.repeat(10), 10)).toBe('x'.repeat(10))
})
