import { describe, expect, test } from 'vitest'
import { isOurScope, permissionsOf } from './scopes.ts'

describe('the scopes of NATS', () => {
  test.each(['orders', '*', 'orders.*:sub', '_INBOX.*:sub', 'a.b-c.d:pub', 'a:*'])('%s is one', (scope) => {
    expect(isOurScope(scope)).toBe(true)
  })

  test.each(['orders*', 'a..b', '.a', 'a.', 'a.*.b', '>', 'a.>', '$JS.API.*', 'a:read', 'a:pub:b'])(
    '%s is none',
    (scope) => {
      expect(isOurScope(scope)).toBe(false)
    },
  )

  test('become lists of subjects; what is not granted is denied', () => {
    expect(permissionsOf([])).toEqual({ pub: { deny: ['>'] }, sub: { deny: ['>'] } })
    expect(permissionsOf(['a.*:sub', 'a.*:sub', 'b:sub'])).toEqual({
      pub: { deny: ['>'] },
      sub: { allow: ['a.>', 'b'] },
    })
    expect(permissionsOf(['*'])).toEqual({ pub: { allow: ['>'] }, sub: { allow: ['>'] } })
  })
})
