import { expect, test } from 'vitest'
import { NO_RULES, readRules, ruleFaults } from './rule-values.ts'

test('of a new backend, only what was entered is sent', () => {
  expect(readRules(NO_RULES)).toEqual({})
  expect(
    readRules({
      ...NO_RULES,
      default_ttl: '10m',
      allowed_scopes: 'a:read\n b:read ,c',
      max_active: ' 5 ',
      rate: '10/hour',
    }),
  ).toEqual({ default_ttl: '10m', allowed_scopes: ['a:read', 'b:read', 'c'], max_active: 5, rate: '10/hour' })
})

test('of one that exists, only what was changed, and a limit that was emptied is taken off', () => {
  const before = {
    description: 'of the shop',
    default_ttl: '1h',
    max_ttl: '24h',
    allowed_scopes: 'a',
    rate: '10/hour',
    max_active: '5',
    rotate_root_after: '90d',
  }
  expect(readRules(before, before)).toEqual({})
  expect(readRules(NO_RULES, before)).toEqual({
    description: '',
    allowed_scopes: null,
    rate: null,
    max_active: null,
    rotate_root_after: null,
  })
})

test('a count is a whole number above 0', () => {
  for (const max_active of ['', ' ', '1', '1000000000'])
    expect(ruleFaults({ ...NO_RULES, max_active })).toEqual({})
  for (const max_active of ['0', '-1', '1.5', '1e3', 'x', '１', '99999999999'])
    expect(Object.keys(ruleFaults({ ...NO_RULES, max_active }))).toEqual(['max_active'])
})
