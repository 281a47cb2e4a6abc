import { describe, expect, it } from 'vitest'
import type { Claims } from './identity.ts'
import { mappedScopes } from './platform-scopes.ts'

const row = (claim: string, value: string, ...scopes: string[]) => ({ claim, value, scopes })
const from = (claims: unknown, ...scopes: ReturnType<typeof row>[]) =>
  mappedScopes({ scopes }, (typeof claims === 'string' ? JSON.parse(claims) : claims) as Claims)

describe('the scopes that claims give', () => {
  it.each<[string, unknown, ReturnType<typeof row>]>([
    ['a text that is equal', { team: 'red' }, row('team', 'red', 's')],
    ['one member of a list', { groups: ['a', 'b'] }, row('groups', 'b', 's')],
    ['a part of a claim', { realm: { roles: ['r'] } }, row('realm/roles', 'r', 's')],
    [
      'a claim whose whole name has a slash',
      { 'https://x/groups': ['g'] },
      row('https://x/groups', 'g', 's'),
    ],
    ['a number, as its text', { org: 7 }, row('org', '7', 's')],
    ['a boolean, as its text', { staff: true }, row('staff', 'true', 's')],
    [
      'a claim of the token that has the name of a prototype',
      '{"__proto__":"x"}',
      row('__proto__', 'x', 's'),
    ],
    ['the empty text', { team: '' }, row('team', '', 's')],
  ])('come from %s', (_, claims, mapping) => {
    expect(from(claims, mapping)).toEqual(['s'])
  })

  it.each<[string, unknown, ReturnType<typeof row>]>([
    ['another case', { team: 'Red' }, row('team', 'red', 's')],
    ['another case of the name', { Team: 'red' }, row('team', 'red', 's')],
    ['a longer text', { team: 'red team' }, row('team', 'red', 's')],
    ['a list written as a text', { groups: 'a,b' }, row('groups', 'b', 's')],
    ['texts separated by spaces', { scope: 'a b' }, row('scope', 'b', 's')],
    ['a list in a list', { groups: [['b']] }, row('groups', 'b', 's')],
    ['an object', { team: { red: true } }, row('team', 'red', 's')],
    ['the text of an object', { team: {} }, row('team', '[object Object]', 's')],
    ['null', { team: null }, row('team', 'null', 's')],
    ['no claim', {}, row('team', 'undefined', 's')],
    ['what every object has', {}, row('constructor', 'Object', 's')],
    ['what every object has, in a part', {}, row('constructor/name', 'Object', 's')],
    ['the length of a list', { groups: ['a'] }, row('groups/length', '1', 's')],
    ['the place in a list', { groups: ['a'] }, row('groups/0', 'a', 's')],
    ['a part of a text', { team: 'red' }, row('team/length', '3', 's')],
    ['a part where the whole name is a claim', { 'a/b': 'y', a: { b: 'x' } }, row('a/b', 'x', 's')],
    ['another normalisation', { team: 'é' }, row('team', 'e\u0301', 's')],
  ])('do not come from %s', (_, claims, mapping) => {
    expect(from(claims, mapping)).toEqual([])
  })

  it('are those of all rows that hold, once each', () => {
    const rows = [row('a', '1', 'x', 'y'), row('b', '2', 'y', 'z'), row('b', '3', 'never')]
    expect(from({ a: '1', b: ['2'] }, ...rows)).toEqual(['x', 'y', 'z'])
  })
})
