import { describe, expect, test } from 'vitest'
import { mintUserCode } from '../../keys/login-secrets.ts'
import { readUserCode, shownUserCode, USER_CODE_ALPHABET, USER_CODE_LENGTH } from './user-code.ts'

describe('a code that a person types', () => {
  test('has more than 2^38 values, without vowels and look-alikes', () => {
    expect(USER_CODE_LENGTH * Math.log2(USER_CODE_ALPHABET.length)).toBeGreaterThan(38)
    expect(USER_CODE_ALPHABET).not.toMatch(/[01AEIOUYL]/)
    expect(new Set(USER_CODE_ALPHABET).size).toBe(USER_CODE_ALPHABET.length)
  })

  test('is read as it is shown, and every letter comes', () => {
    const seen = new Set<string>()
    for (let n = 0; n < 1_000; n += 1) {
      const code = mintUserCode()
      for (const letter of code) seen.add(letter)
      expect(readUserCode(shownUserCode(code))).toBe(code)
    }
    expect([...seen].sort().join('')).toBe(USER_CODE_ALPHABET)
  })

  test.each(['bcdf-2345', ' BCDF 2345 ', 'BCDF2345', 'b c d f - 2 3 4 5', 'BCDF--2345'])('%j', (typed) => {
    expect(readUserCode(typed)).toBe('BCDF2345')
  })

  test.each([
    '',
    '-',
    'BCDF-234',
    'BCDF-23456',
    'BCDF-2340',
    'BCDF-234A',
    'BCDF_2345',
    'BCDF–2345',
    'BCDF\u00a02345',
    'BCDF\u200b2345',
    'BCDF-234\uff15',
    '\u017fCDF-2345',
    'BCDF-2345\0',
    'BCDF\n2345',
  ])('not %j', (typed) => {
    expect(readUserCode(typed)).toBeUndefined()
  })
})
