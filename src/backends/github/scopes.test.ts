import { expect, it } from 'vitest'
import { github } from './kind.ts'

it.each([
  'acme',
  'acme/',
  '/web',
  'acme/..',
  'acme/web/x',
  'acm*/web',
  'acme/web:nothing',
  'acme/web:members:read',
  'acme/web:contents:all',
  'acme/web:read:write',
  'acme/web:contents:read:x',
  'acme/web:w*',
  'acme/web:re*',
  'acme/web:A*',
  '-a/web',
])('does not understand the scope %s', (scope) => expect(github.scopes.valid(scope)).toBe(false))

it.each(['acme/web:co*', 'acme/web:rep*', 'acme/web:w*:write', 'acme/web:*'])(
  'understands the scope %s',
  (scope) => expect(github.scopes.valid(scope)).toBe(true),
)
