import { describe, expect, test } from 'vitest'
import type { Config } from './config.ts'
import { givesAnything, isOurScope, planGrants } from './scopes.ts'

const settings: Config = {
  url: 'https://rabbit.test:15671',
  username: 'mayfly',
  password: 'x',
  vhosts: ['/', 'shop', 'shop-test'],
  local: false,
}

const permissionsOf = (...scopes: string[]) =>
  Object.fromEntries(planGrants(settings, scopes).map(({ vhost, permissions }) => [vhost, permissions]))

describe('the scopes of RabbitMQ', () => {
  test.each(['/:orders:read', 'shop', 'shop:orders.*', '*:*:write', 'shop:a/b@c+d:*'])(
    '%s is one',
    (scope) => {
      expect(isOurScope(scope)).toBe(true)
    },
  )

  test.each(['shop:orders:delete', 'shop:orders:r*', 'shop:a:read:b', 'shop:.*)|(:read', 'shop:a**', ':a'])(
    '%s is none',
    (scope) => {
      expect(isOurScope(scope)).toBe(false)
    },
  )

  test('give nothing where the backend lacks the virtual host', () => {
    expect(givesAnything(settings, 'shop:orders:read')).toBe(true)
    expect(givesAnything(settings, 'sh*')).toBe(true)
    expect(givesAnything(settings, 'bank:orders:read')).toBe(false)
    expect(planGrants(settings, ['bank:orders:read'])).toEqual([])
  })

  test('become anchored expressions, of which no character is special', () => {
    expect(permissionsOf('shop:a.b+c:read', 'shop:jobs-*:read', 'shop:jobs-*:write')).toEqual({
      shop: { configure: '^$', write: '\\A(?:jobs\\-)', read: '\\A(?:a\\.b\\+c\\z|jobs\\-)' },
    })
  })

  test('name the virtual hosts of the backend by their beginning', () => {
    const all = { configure: '.*', write: '.*', read: '.*' }
    expect(permissionsOf('shop*')).toEqual({ shop: all, 'shop-test': all })
    expect(Object.keys(permissionsOf('*:a:read'))).toEqual(['/', 'shop', 'shop-test'])
    expect(permissionsOf('shop:a:read', 'shop:*')).toEqual({ shop: all })
  })
})
