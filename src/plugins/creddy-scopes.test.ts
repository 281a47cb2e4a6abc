import { expect, it } from 'vitest'
import { ANY_SCOPE, readPattern, theirScope } from './creddy-scopes.ts'
import { isForm } from './scope-forms.ts'

const NAMES = { plugin: 'github', backend: 'code' }

it.each([
  // What the plugin states, our form, one of our scopes, and what the plugin gets.
  ['github:*:read', '<name>:read', 'app:read', 'github:app:read'],
  ['github:<owner>:<repo>', '<owner>:<repo...>', 'me:app', 'github:me:app'],
  ['github:{Owner}:*:*', '<owner>:<name>:<name2...>', 'me:a:b:c', 'github:me:a:b:c'],
  ['github:read-*', 'read-<name...>', 'read-app', 'github:read-app'],
  ['github:*-read', '<name>-read', 'app-read', 'github:app-read'],
  ['github:*:*', '<name>:<name2...>', 'a*:read', 'github:a*:read'],
  ['github:*', '<name...>', '*', 'github:*'],
  ['github', '*', '*', 'github'],
  ['*:read', 'read', 'read', 'code:read'],
  ['*', '*', '*', 'code'],
  ['repo:read', 'repo:read', 'repo:read', 'repo:read'],
])('understands the pattern %s', (pattern, form, scope, theirs) => {
  const read = readPattern('github', pattern, 'Read the app.')
  expect(read.form).toEqual({ form, gives: 'read the app' })
  expect(isForm(form)).toBe(true)
  expect(read.matches(scope)).toBe(true)
  expect(theirScope(NAMES, [readPattern('github', 'github:other', ''), read], scope)).toBe(theirs)
})

it('takes what only the plugin knows where it states no pattern', () => {
  expect(isForm(ANY_SCOPE.form.form)).toBe(true)
  expect(theirScope(NAMES, [ANY_SCOPE], 'a:b')).toBe('github:a:b')
})

it('says something of what a scope gives where the plugin says nothing', () => {
  expect(readPattern('github', 'github:*', ' ').form.gives).toBe('do what the plugin gives for the scope')
})
