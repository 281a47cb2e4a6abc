import { expect, test } from 'vitest'
import { ownPath } from './sso.ts'

const ORIGIN = 'https://mayfly.example.com'

test.each([
  '/console',
  '/console/allow?response_type=code&redirect_uri=http%3A%2F%2F127.0.0.1%3A9%2Fcallback',
  '/console/pending/enr_1',
  '/console?x=1',
])('goes back to %s after a login', (path) => {
  expect(ownPath(path, ORIGIN)).toBe(path)
})

test.each([
  'https://evil.example/console',
  '//evil.example/console',
  '/\\evil.example/console',
  'javascript:alert(1)',
  'data:text/html,x',
  '/consolex',
  '/console/../docs',
  '/console/%2e%2e/docs',
  '/v1/admin/me',
  'https://mayfly.example.com:444/console',
  'http://mayfly.example.com/console',
  'http://[',
  '',
])('never goes to %j', (path) => {
  expect(ownPath(path, ORIGIN)).toBe('/console')
})

test('keeps no fragment, which could be a link of another person', () => {
  expect(ownPath('/console/me#link=mfl_1', ORIGIN)).toBe('/console/me')
})
