import { expect, it } from 'vitest'
import { isLinearPattern } from './pattern.ts'

it.each([
  '^[A-Za-z0-9._:-]+$',
  '^https?://[^?#@\\\\\\s]+$',
  '^(\\*\\.)?[A-Za-z0-9._:/-]+\\*?$',
  '^[0-9a-f]{8}-[0-9a-f]{4}$',
  '^(disable|require)$',
  '^[a-z][a-z0-9-]{0,39}$',
  '^[^\\u0000\\s]+$',
  `^(?:${Array.from({ length: 60 }, (_, index) => `region-${index}`)
    .join('|')
    .slice(0, 480)})$`,
  '^(a|b|c)-(d|e)(-f)?$',
])('a pattern that takes time in proportion to the text: %s', (pattern) => {
  expect(isLinearPattern(pattern)).toBe(true)
})

it.each([
  '^(a+)+$',
  '^(a|a)*$',
  '^(a?){40}$',
  'a+$',
  '^a*a*$',
  '^(a)\\1$',
  '^(?=a)b$',
  '^(?<name>a)$',
  '^a{1,9}b{1,9}$',
  '^a?b?c?d?e?f?g?h?i?$',
  `^${'(a|a)'.repeat(11)}b$`,
  `^${'(a?|b)'.repeat(6)}$`,
  '^a|b$',
  '^[$',
  '^(a$',
  '^a++$',
  `^${'a'.repeat(600)}$`,
])('another one: %s', (pattern) => {
  expect(isLinearPattern(pattern)).toBe(false)
})
