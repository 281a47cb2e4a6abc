import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonText, oneLine, painted, plain } from './terminal-text.ts'

const HOSTILE: [text: string, shown: string][] = [
  ['a\x1b]0;title\x07b', 'a\ufffd]0;title\ufffdb'],
  ['a\x1b[2Jb', 'a\ufffd[2Jb'],
  ['a\x1b[8mconcealed', 'a\ufffd[8mconcealed'],
  ['a\x9b8mconcealed', 'a\ufffd8mconcealed'],
  ['a\rb', 'a\ufffdb'],
  ['a\bb\x7fc\0', 'a\ufffdb\ufffdc\ufffd'],
  ['a\u202eb\u2066\u200f', 'a\ufffdb\ufffd\ufffd'],
  ['a\u2028b\ufeff\u{e0041}', 'a\ufffdb\ufffd\ufffd'],
]

test.each([
  ...HOSTILE,
  ['\x1b[31mred\x1b[0m', '\ufffd[31mred\ufffd[0m'],
  ['two\r\nlines\t', 'two\nlines\t'],
  ['é漢🦟 👩\u200d🚀', 'é漢🦟 👩\u200d🚀'],
])('replaces what could steer a terminal or deceive its reader: %j', (text, shown) => {
  expect(plain(text)).toBe(shown)
})

test.each([...HOSTILE, ['\x1b[31mred\x1b[0m', '\x1b[31mred\x1b[0m']])(
  'keeps our own colours and nothing else: %j',
  (text, shown) => {
    expect(painted(text)).toBe(shown)
  },
)

test('a cell is one line without colours', () => {
  expect(oneLine('a\n\tb\x1b[31mc')).toBe('a b\ufffd[31mc')
})

test('JSON has the same value, and no character that steers a terminal', () => {
  const unit = fc.oneof(
    fc.constantFrom(...'a"\\\n\r\t\x1b\x7f\x85\x9b\u061c\u200e\u202e\u2028\ufeff\u{e0041}🦟'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  fc.assert(
    fc.property(
      fc.dictionary(fc.string({ unit }), fc.array(fc.string({ unit }))),
      fc.boolean(),
      (value, wide) => {
        const text = jsonText(value, wide ? 2 : undefined)
        expect(JSON.parse(text)).toEqual({ ...value })
        expect(plain(text)).toBe(text)
      },
    ),
  )
})
