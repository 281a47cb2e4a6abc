import { expect, test } from 'vitest'
import { word } from '../../ui/word.ts'
import { commandOf, updateOf } from './command.ts'

test('whatever is typed is one word of the shell', () => {
  expect(['ci-build', 'orders:read', '', 'a b', "it's", '$(id)', 'x;y', 'reports:*'].map(word)).toEqual([
    'ci-build',
    'orders:read',
    "''",
    "'a b'",
    "'it'\\''s'",
    "'$(id)'",
    "'x;y'",
    "'reports:*'",
  ])
})

test('the command that creates what the form says', () => {
  expect(commandOf({ name: '', scopes: [] })).toBe('mayfly agent create NAME')
  expect(
    commandOf({ name: 'ci', scopes: ['a:*', 'b'], expires_in: '8h', audiences: ['x'], description: 'a job' }),
  ).toBe("mayfly agent create ci --scope 'a:*' --scope b --expires-in 8h --audience x --description 'a job'")
})

test('the command that changes what the form changes', () => {
  expect(updateOf('ci', { add_scopes: ['a'], remove_scopes: ['b'], expires_at: null, revoke: true })).toBe(
    'mayfly agent update ci --add-scope a --remove-scope b --no-expiry --revoke',
  )
  expect(updateOf('ci', { audiences: [], description: null })).toBe(
    "mayfly agent update ci --no-audiences --description ''",
  )
})
