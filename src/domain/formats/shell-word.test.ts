import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shellQuote, shellWord } from './shell-word.ts'

test('a shell reads quoted text back unchanged', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((one) => !one.includes('\0'))
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 20 }), (texts) => {
      const script = texts.map((one) => `printf '%s\\0%s\\0' ${shellQuote(one)} ${shellWord(one)}`).join('\n')
      const read = execFileSync('/bin/sh', ['-c', script]).toString().split('\0').slice(0, -1)
      expect(read).toEqual(texts.flatMap((one) => [one, one]))
    }),
    { numRuns: 30 },
  )
  expect(shellQuote(`$(id) \`id\` "x" 'y' \\ !`)).toBe(`'$(id) \`id\` "x" '\\''y'\\'' \\ !'`)
})

test.each([
  '',
  'plain',
  'a b',
  "it's",
  '$(id)',
  '`id`',
  'a;b',
  '"',
  '\\',
  'a\nb',
  '*',
  '~',
  '-x',
  '#',
  '!x',
  'é',
])('%j is one word for sh, as it is', (word) => {
  const said = execFileSync('sh', ['-c', `printf '%s|' ${shellWord(word)} end`]).toString()
  expect(said).toBe(`${word}|end|`)
})
