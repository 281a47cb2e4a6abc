import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isScope } from '../../domain/scope.ts'
import { RECIPES } from './builtin.ts'
import type { Recipe } from './schema.ts'
import { createGrammar } from './scopes.ts'

const grammarOf = (scopes: Partial<Recipe['scopes']>) =>
  createGrammar({
    fields: { places: { type: 'list', form: '<team>', description: 'x' } },
    scopes: { help: 'Help.', ...scopes },
  } as unknown as Recipe)

const TEAMS = grammarOf({
  forms: [
    { form: '<team>:<role>', gives: '<role> a team' },
    { form: '<team>', gives: 'look at a team', sets: { role: ['look'] } },
  ],
  parts: {
    role: { values: { read: { gives: 'read' }, 'write+': { gives: 'change', sends: ['read', 'write'] } } },
  },
  most: 3,
  same: ['team'],
  places: 'places',
})
const config = { places: ['a', 'b'] }

test('a form is shown once for each value of a listed part', () => {
  expect(TEAMS.forms).toEqual([
    { form: '<team>:read', gives: 'read a team' },
    { form: '<team>:write+', gives: 'change a team' },
    { form: '<team>', gives: 'look at a team' },
  ])
})

describe('what a scope becomes', () => {
  test('parts, with what a value sends, or what the form sets', () => {
    expect(TEAMS.read(config, ['a:write+']).each).toEqual([{ team: 'a', role: ['read', 'write'] }])
    expect(TEAMS.read(config, ['b']).each).toEqual([{ team: 'b', role: ['look'] }])
  })

  test('of several: the same part as one value, the other ones as lists without repetition', () => {
    expect(TEAMS.read(config, ['a:read', 'a:read', 'a']).vars).toEqual({
      team: 'a',
      role: ['read', 'look'],
    })
  })

  test.each([
    [['a:read', 'b:read'], 'the same team'],
    [['a', 'a', 'a', 'a'], 'at most 3'],
    [[], 'at least one'],
    [['c:read'], 'names a place'],
    [['a:all'], 'Help.'],
    [['a:write'], 'Help.'],
    [['*'], 'Help.'],
    [['a:read\n'], 'Help.'],
  ])('%j is refused', (scopes, message) => {
    expect(() => TEAMS.read(config, scopes)).toThrow(message)
  })
})

test('only what a place has is ever given', () => {
  expect(['a:read', 'c:read'].map((scope) => TEAMS.gives?.(config, scope))).toEqual([true, false])
})

test.each((RECIPES as Recipe[]).map((recipe) => [recipe.type, createGrammar(recipe)]))(
  '%s takes no text that is not a scope, and none that leaves its part',
  (_, grammar) => {
    const pieces = fc.constantFrom(
      '..',
      '/',
      ':',
      '*',
      '{name}',
      '"',
      '\r\n',
      '%2f',
      'app',
      'read',
      ' ',
      ',',
      '?x=1',
      '#',
      '\u0000',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
        const text = parts.join('')
        if (grammar.valid(text)) expect(isScope(text)).toBe(true)
      }),
    )
  },
)
