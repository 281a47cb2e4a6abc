import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { variablesOf } from './credential-variables.ts'
import { shellQuote, shellWord } from './shell.ts'

test('makes one variable for a token, or one for each field', () => {
  expect(variablesOf({ token: 't' }, 'demo')).toEqual({ DEMO_TOKEN: 't' })
  expect(variablesOf({ token: '{}', fields: { username: 'u', port: 5432 } }, 'my-db.1')).toEqual({
    MY_DB_1_USERNAME: 'u',
    MY_DB_1_PORT: '5432',
  })
  expect(variablesOf({ token: 't' }, '1st')).toEqual({ _1ST_TOKEN: 't' })
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
