import { expect, test } from 'vitest'
import { InvalidValue } from '../domain/fault.ts'
import { PolicySchema } from './policy-schema.ts'
import { SETTINGS } from './settings.ts'
import { parseUser, parseVariable } from './values.ts'

test.each(['HTTPS_PROXY', 'tz', '_X1'])('%s may be passed to plugins', (name) => {
  expect(parseVariable(name)).toBe(name)
})

test.each(['MAYFLY_MASTER_KEY', 'mayfly_token', 'NODE_OPTIONS', 'PLUGIN_CLIENT_CERT', 'A B', 'A=b', ''])(
  '%j is not passed to plugins',
  (name) => {
    expect(() => parseVariable(name)).toThrow(InvalidValue)
  },
)

test.each(['mayfly-plugin', '998', '_x'])('%s is a user', (name) => expect(parseUser(name)).toBe(name))
test.each(['', '-1', 'a b', 'root:x'])('%j is no user', (name) => {
  expect(() => parseUser(name)).toThrow(InvalidValue)
})

test('the settings and policies say how exact the number of active credentials is', () => {
  const described = [SETTINGS['limits.max_active_per_agent'].schema, PolicySchema.properties.max_active] as {
    description?: string
  }[]
  for (const { description } of described)
    expect(description).toContain('n nodes may together admit up to n times as many')
})
