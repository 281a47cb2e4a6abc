import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dotenvQuote, variablesOf } from './credential-variables.ts'
import { shellQuote, shellWord } from './shell.ts'

test('makes one variable for a token, or one for each field', () => {
  expect(variablesOf({ backend: 'demo', token: 't' })).toEqual({ DEMO_TOKEN: 't' })
  expect(variablesOf({ backend: 'my-db.1', token: '{}', fields: { username: 'u', port: 5432 } })).toEqual({
    MY_DB_1_USERNAME: 'u',
    MY_DB_1_PORT: '5432',
  })
  expect(variablesOf({ backend: '1st', token: 't' })).toEqual({ _1ST_TOKEN: 't' })
  expect(variablesOf({ backend: 'demo', token: 't' }, 'GH')).toEqual({ GH_TOKEN: 't' })
})

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

test('escapes a dotenv value so that it stays within its quotes', () => {
  expect(dotenvQuote('a"b\\c$d`e\nf\r')).toBe('"a\\"b\\\\c\\$d\\`e\\nf\\r"')
})
