import { expect, it } from 'vitest'
import { covers } from '../../domain/scope.ts'
import type { Config } from './config.ts'
import { canGrant, grantStatement, isValid, planGrants } from './grants.ts'

const settings: Config = {
  host: 'db.example.com',
  port: 3306,
  username: 'mayfly',
  local: false,
  databases: ['shop', 'shop_2', 'admin'],
  grant: 'read-write',
}
const readOnly: Config = { ...settings, grant: 'read-only' }

it('grants what a scope names, and by a pattern only databases of the backend', () => {
  const plan = (scope: string, config = settings) => planGrants(config, [scope])
  expect(plan('shop:read')).toEqual([{ database: 'shop', access: 'read' }])
  expect(plan('shop')).toEqual([{ database: 'shop', access: 'write' }])
  expect(plan('shop', readOnly)).toEqual([{ database: 'shop', access: 'read' }])
  expect(plan('shop*:read').map(({ database }) => database)).toEqual(['shop', 'shop_2'])
  expect(plan('*').map(({ database }) => database)).toEqual(['shop', 'shop_2', 'admin'])
  expect(plan('ad*')).toEqual([])
  expect(plan('shop.orders:write')).toEqual([{ database: 'shop', table: 'orders', access: 'write' }])
  expect(plan('shop.*:read')).toEqual([{ database: 'shop', access: 'read' }])
  expect(planGrants(settings, [])).toEqual([])
})

it('refuses what it cannot give, and says beforehand that it cannot', () => {
  const refused = (config: Config, scope: string) => {
    expect(() => planGrants(config, [scope])).toThrow(expect.objectContaining({ fault: 'unsupported' }))
    expect(canGrant(config, scope)).toBe(false)
  }
  refused(readOnly, 'shop:write')
  refused(settings, 'other:read')
  refused(settings, 'mysql.user:read')
  refused(settings, 'shop.or*:read')
  refused(settings, 'shop:drop')
  refused(settings, 'shop:read:more')
  expect(canGrant(settings, 'none*')).toBe(false)
  expect(canGrant(settings, 'shop.*')).toBe(true)
})

it('gives a narrower scope nothing that a wider one lacks', () => {
  const scopes = [
    '*',
    'shop',
    'shop*',
    'shop:read',
    'shop:write',
    'shop:*',
    'shop.*',
    'shop.orders',
    'shop.orders:read',
  ]
  const reach = (scope: string) =>
    planGrants(settings, [scope]).flatMap(({ database, table, access }) =>
      (access === 'write' ? ['read', 'write'] : ['read']).flatMap((one) =>
        (table === undefined ? ['orders', 'other'] : [table]).map((name) => `${database}.${name}:${one}`),
      ),
    )
  for (const wide of scopes)
    for (const narrow of scopes)
      if (covers(wide, narrow))
        expect(reach(wide), `${wide} ${narrow}`).toEqual(expect.arrayContaining(reach(narrow)))
})

it('escapes wildcards in the name of a database, and nowhere else', () => {
  const grant = { database: 'a_b%`c', access: 'read' as const }
  expect(grantStatement(grant, 'u')).toBe('GRANT SELECT, SHOW VIEW ON `a\\_b\\%``c`.* TO u')
  expect(grantStatement({ ...grant, table: 't_1' }, 'u')).toContain('ON `a_b%``c`.`t_1` TO')
})

it('refuses text that is no scope', () => {
  for (const text of [
    '',
    '.',
    'shop.',
    '.orders',
    'shop:READ',
    "shop';--",
    'shop:read ',
    'shop`.x',
    'a\\_b',
  ]) {
    expect(isValid(text), text).toBe(false)
  }
})
