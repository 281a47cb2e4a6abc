import { expect, it } from 'vitest'
import { isForm, matcherOf } from '../scope-forms.ts'
import { ANY_SCOPE, readPattern, readPatterns, theirScope } from './scopes.ts'

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
  ['github:<owner>/<repo>', '<owner>/<repo...>', 'me/app', 'github:me/app'],
  ['github:<owner>/<repo>', '<owner>/<repo...>', 'me/app:read', 'github:me/app:read'],
  ['github:<owner>/*', '<owner>/<name...>', 'me/*:read', 'github:me/*:read'],
  ['github:orgs/<org>/<repo>:read', 'orgs/<org>/<repo>:read', 'orgs/me/app:read', 'github:orgs/me/app:read'],
  // What no form of ours can say is left to the plugin.
  ['github:<owner>-<repo>', '<scope...>', 'me-app:read', 'github:me-app:read'],
  ['github:(read|write)', '<scope...>', 'read', 'github:read'],
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

const forms = (plugin: string, ...stated: [pattern: string, ...examples: string[]][]) =>
  readPatterns(
    plugin,
    stated.map(([pattern, ...examples]) => ({ pattern, gives: '', examples })),
  ).map(({ form }) => form.form)

it('takes what the examples show and the patterns do not say', () => {
  expect(forms('vault', ['vault:<path>:read', 'vault:a:read'])).toEqual(['<path>:read'])
  expect(forms('vault', ['vault:<path>:read', 'vault:a:read', 'vault:a'])).toEqual([
    '<path>:read',
    '<scope...>',
  ])
  expect(forms('vault', ['vault', 'vault'], ['vault:kv', 'vault:kv', 'vault:<mount>'])).toEqual(['*', 'kv'])
  expect(forms('vault', ['vault:kv', 'other:kv'])).toEqual(['kv', '<scope...>'])
  expect(forms('vault')).toEqual(['<scope...>'])
})

it.each([
  ['<owner>/<repo>', ['me/app'], ['me', 'me/app/x', '/app', 'me/', 'me/app:read', 'me:x/app']],
  ['<owner>/<repo...>', ['me/app', 'me/app/x', 'me/app:read'], ['me', 'me/', 'me:x/app']],
  ['read:<owner>/<repo>', ['read:me/app'], ['read:me', 'write:me/app']],
  ['pre-<owner>/x/<repo>-post', ['pre-a/x/b-post'], ['pre-a/y/b-post', 'pre-/x/b-post', 'pre-a/x/-post']],
])('divides the form %s at its slashes', (form, good, bad) => {
  const matches = matcherOf([form])
  expect(isForm(form)).toBe(true)
  expect([good.filter((one) => !matches(one)), bad.filter(matches)]).toEqual([[], []])
})

it.each(['<a><b>', '<a>-<b>', '<a>//<b>', '/<a>/<b>', '<a...>/<b>', '<a>/<b...>:x'])(
  '%s is no form',
  (form) => expect(isForm(form)).toBe(false),
)
