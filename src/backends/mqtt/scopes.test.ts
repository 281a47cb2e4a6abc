import { describe, expect, test } from 'vitest'
import { aclsOf, isOurScope } from './scopes.ts'

describe('the scopes of MQTT', () => {
  test.each(['a', '*', '+', 'a/b/c:read', 'a/*:write', '/a', 'a/+/b:*', '+/*'])('%s is one', (scope) => {
    expect(isOurScope(scope)).toBe(true)
  })

  test.each(['$SYS/*', 'a/b*', 'a+/b', 'a/*/b', 'a:subscribe', 'a:read:b', '#', 'a/#', 'a:re*'])(
    '%s is none',
    (scope) => {
      expect(isOurScope(scope)).toBe(false)
    },
  )

  test('become entries of an access list, without duplicates', () => {
    const entry = (acltype: string, topic: string) => ({ acltype, topic, priority: 0, allow: true })
    const rest = { acltype: 'publishClientReceive', topic: '#', priority: -1, allow: false }
    expect(aclsOf([])).toEqual([rest])
    expect(aclsOf(['a/*:read', 'a/*', 'b:write'])).toEqual([
      entry('subscribePattern', 'a/#'),
      entry('publishClientReceive', 'a/#'),
      entry('publishClientSend', 'a/#'),
      entry('publishClientSend', 'b'),
      rest,
    ])
  })
})
