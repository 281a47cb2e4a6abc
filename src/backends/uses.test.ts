import { describe, expect, test } from 'vitest'
import { ruleFault } from '../domain/use-rules.ts'
import { RECIPES } from './http/builtin.ts'
import { kindOf } from './http/kind.ts'
import type { Recipe } from './http/schema.ts'
import { AUTHORIZATION, httpUse, rules, segment } from './uses.ts'

describe('a name within a pattern', () => {
  test.each([
    ['shop', 'shop'],
    ['acme/shop', 'acme%2Fshop'],
    ['web-*', 'web-*'],
    ['*', '*'],
    ['a*b', 'a*b'],
    ['a?b#c\\d', 'a*b*c*d'],
    ['a%41', 'a*41'],
    ['a%2Fb', 'a*2Fb'],
    ['a\u0000\n', 'a*'],
    ['', '*'],
    ['..', '*'],
    ['a/../b', '*'],
    ['?????', '*'],
  ])('of %j is %s', (name, expected) => {
    expect(segment(name)).toBe(expected)
  })

  test.each(['a\u0000\n', '**', '..', 'a/b', '%2e%2e', 'a%2Fb', '*'.repeat(9), '\ud800'])(
    '%j makes a sound pattern',
    (name) => {
      expect(ruleFault({ methods: ['GET'], path: `/${segment(name)}/x`, slashes: true })).toBe(undefined)
    },
  )
})

describe('a use of an address', () => {
  const of = (base: string, local = false) =>
    httpUse('api', { base, local }, { places: [AUTHORIZATION], allow: rules(['GET'], ['/a/**', '/']) })

  test('has its origin, and its path in every rule', () => {
    const [use] = of('https://Git.Example.com:443/gitea/')
    expect(use?.origin).toBe('https://git.example.com')
    expect(use?.allow.map(({ path }) => path)).toEqual(['/gitea/a/**', '/gitea/'])
  })

  test('is none where the secret would be shown, or that is no address', () => {
    expect(of('http://git.example.com')).toEqual([])
    expect(of('ftp://git.example.com')).toEqual([])
    expect(of('git.example.com')).toEqual([])
    expect(of('http://127.0.0.1:3000', true)).toHaveLength(1)
  })
})

test('what a field or a scope says never becomes more of a pattern than a name', () => {
  const recipe = {
    ...(RECIPES as Recipe[]).find(({ type }) => type === 'terraform-cloud'),
    uses: [
      {
        name: 'api',
        places: [{ header: 'Authorization' }],
        allow: [
          { methods: ['GET'], paths: ['/o/{organization}/t/{team}/**'] },
          { methods: ['GET'], paths: ['/p/{organization}'], slashes: true },
        ],
      },
    ],
  } as Recipe
  const config = { base_url: 'https://app.terraform.io', token: 'x', organization: 'a/../**?#' }
  const [use] = kindOf(recipe).uses?.(config as never, ['team-1']) ?? []
  if (use?.protocol !== 'http') throw new Error('there is no use')
  expect(use.allow.map(({ path }) => path)).toEqual(['/o/a/*/*/t/team-1/**', '/p/*'])
  for (const rule of use.allow) expect(ruleFault(rule)).toBe(undefined)
})
