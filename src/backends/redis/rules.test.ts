import { expect, it } from 'vitest'
import { covers } from '../../domain/scope.ts'
import { isValid, rulesFor } from './rules.ts'

const patternsOf = (...scopes: string[]) => rulesFor(scopes).filter((rule) => /^(%R~|~|&)/.test(rule))

it('makes patterns of the names in scopes', () => {
  expect(patternsOf('read:shop:*')).toEqual(['%R~shop:*'])
  expect(patternsOf('read:shop')).toEqual(['%R~shop', '%R~shop:*'])
  expect(patternsOf('write:shop:cart*', 'channel:news')).toEqual(['~shop:cart*', '&news', '&news:*'])
  expect(patternsOf('*')).toEqual(['~*', '&*'])
  expect(patternsOf('read')).toEqual(['%R~*'])
  expect(patternsOf()).toEqual([])
  expect(patternsOf('script')).toEqual([])
})

it('refuses text that is no scope, and patterns that Redis would take for more', () => {
  for (const text of [
    '',
    'read:',
    'get:x',
    'read:*:x',
    'read:a*b',
    'read:a**',
    'read:[a]',
    'read:a?',
    'read:a\\',
    'read:a ~*',
    're*',
  ])
    expect(isValid(text), text).toBe(false)
  expect(() => rulesFor(['read:*:x'])).toThrow(expect.objectContaining({ fault: 'unsupported' }))
})

it('gives a narrower scope no key that a wider one lacks', () => {
  const names = ['a', 'ab', 'a:b', 'a:b:c', 'ab:c', 'b']
  const scopes = [
    '*',
    'read',
    'read:*',
    'read:a',
    'read:a*',
    'read:a:*',
    'read:a:b',
    'read:a:b*',
    'read:a:b:c',
    'write:a',
    'write:a:b',
    'channel:a',
    'channel:a:*',
  ]
  const reach = (scope: string) =>
    patternsOf(scope).flatMap((pattern) => {
      const [, sigil = '', glob = ''] = /^(%R~|~|&)(.*)$/.exec(pattern) ?? []
      const matched = names.filter((name) =>
        glob.endsWith('*') ? name.startsWith(glob.slice(0, -1)) : name === glob,
      )
      return matched.flatMap((name) => (sigil === '~' ? ['%R~', '~'] : [sigil]).map((one) => one + name))
    })
  for (const wide of scopes)
    for (const narrow of scopes)
      if (covers(wide, narrow))
        expect(reach(wide), `${wide} ${narrow}`).toEqual(expect.arrayContaining(reach(narrow)))
})
