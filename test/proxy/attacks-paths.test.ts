import { describe, expect, it, test } from 'vitest'
import type { Asked, Header } from '../../src/proxy/rules/asked.ts'
import { createRules } from '../../src/proxy/rules/decide.ts'
import * as w from './rules-world.ts'

/** The attack list: paths and methods that are not what they seem. */
const rules = createRules(w.WORLD)
const { ask } = w
const API = 'https://api.github.example'
const bearer = { Authorization: `Bearer ${w.GITHUB}` }

function outcome(asked: Asked): string {
  const verdict = rules.decide(asked)
  return verdict.kind === 'refuse' ? verdict.reason : verdict.kind
}
const get = (path: string, headers: Record<string, string> | readonly Header[] = bearer) =>
  outcome(ask('GET', `${API}${path}`, headers))

describe('paths that are not what they seem (the list of Warden)', () => {
  it.each([
    ...[
      '/public/%2e%2e/admin',
      '/public/../admin',
      '/public/..',
      '/..',
      '/public/%2E%2e',
      '/public/.%2e/admin',
      '/./public/x',
    ],
    ...[
      '/public/..%2fadmin',
      '/public/%2e%2e%2fadmin',
      '/public/..;a=b/admin',
      '/public/..%3b/admin',
      '/public/%2e',
      '/public/..%20/x',
      '/public/..%3f/x',
      '/public/..%23',
    ],
    ...['/public/..\\admin', '/public/%5cadmin', '/public\\x', '/public/%5C..%5cadmin', '/public/..%5cx'],
    ...['/public/%00', '/public/x%0d%0aHost:evil', '/public/%0a', '/public/%7f', '/public/%1b'],
    ...['/public/%', '/public/%2', '/public/%zz', '/public/x%', '/public/%u002e', '/public/%-1'],
    ...['/public/%c0%ae%c0%ae', '/public/%ff', '/public/%ed%a0%80', '/public/\u00e4', '/public/x#y'],
  ])('refuses %s', (path) => {
    expect(['bad_path', 'bad_target']).toContain(get(path))
  })

  it.each(['/public/a%2fb', '/public%2fa', '/public//a', '//public/a', '/public/a//', '/public/a%2F'])(
    'refuses %s, for which no rule permits slashes',
    (path) => {
      expect(['slash_not_allowed', 'path_not_allowed']).toContain(get(path))
    },
  )

  it('an escaped ? or # is a byte of its segment, and is sent as it came', () => {
    for (const path of ['/public/x%3Fadmin=1', '/public/x%23y', '/public/%252e%252e', '/public/a%252fb']) {
      const verdict = rules.decide(ask('GET', `${API}${path}`, bearer))
      expect(verdict.kind === 'inject' && verdict.apply(w.WORLD[0].live), path).toMatchObject({
        target: path,
      })
    }
    expect(get('/public%3f/x')).toBe('path_not_allowed')
  })

  it.each([
    ...[
      '/GraphQL',
      '/graphql/',
      '/graphql;a=b',
      '/graphq%6c',
      '/user/1/TOKENS',
      '/user/1/tokens/',
      '/user/1/tokens;x',
      '/user/;1/tokens',
      '/user/%237/tokens',
      '/user/%3f/tokens',
      '/user/1/tokens%3fx',
    ],
    ...['/repos/acme/shop/keys;x', '/repos/acme/shop/KEYS/1'],
    // Rails and Grape, which GitLab is made of, take off a format.
    ...['/user/1/tokens.json', '/user/1/tokens.JSON/', '/user/1/tokens%2ejson', '/user/1/tokens.json;x'],
    ...['/user/1/tokens.', '/graphql.xml', '/repos/acme/shop/keys.json'],
  ])('denies %s in the way that a lenient server reads it', (path) => {
    expect(get(path)).toBe('denied')
  })

  it('denies what slashes hide, even where a rule permits them', () => {
    const use = w.useOf('api', API, {
      allow: [w.every('/**', { slashes: true })],
      deny: [w.every('/graphql'), w.every('/user/*/tokens')],
    })
    const wide = createRules([w.heldOf({ name: 'x', uses: [use], fields: { '': [w.GITHUB, 'secret'] } })])
    const reasonOf = (path: string) => {
      const verdict = wide.decide(ask('GET', `${API}${path}`, bearer))
      return verdict.kind === 'refuse' ? verdict.reason : verdict.kind
    }
    expect(reasonOf('/a//b%2Fc')).toBe('inject')
    for (const path of [
      '//graphql',
      '/%2fgraphql',
      '/graphql//',
      '/user%2f1/tokens',
      '/user/a%2fb/tokens',
      '/user//1//tokens',
    ]) {
      expect(reasonOf(path), path).toBe('denied')
    }
    expect(reasonOf('/a//../b')).toBe('bad_path')
    expect(reasonOf('/a%2f..%2fb')).toBe('bad_path')
  })

  it('decides on the method as it is', () => {
    for (const method of ['get', 'Get', 'CONNECT', 'TRACE', 'PRI', '', 'GET ', 'G\u0000T']) {
      expect(outcome(ask(method, `${API}/public/x`, bearer)), method).toBe('bad_method')
    }
    for (const name of [
      'X-HTTP-Method-Override',
      'x-http-method',
      'X-Method-Override',
      'X_HTTP_Method_Override',
      'X-Original-URL',
      'X-Rewrite-URL',
    ]) {
      expect(get('/public/x', { ...bearer, [name]: 'DELETE' }), name).toBe('method_override')
    }
    for (const query of [
      '?_method=DELETE',
      '?a=b&%5Fmethod=PUT',
      '?_METHOD=x',
      '?X-HTTP-Method-Override=PUT',
    ]) {
      expect(get(`/public/x${query}`), query).toBe('method_override')
    }
  })

  it('refuses what Vault would answer with a token that gives the reply elsewhere', () => {
    const lookUp = (name: string) =>
      outcome(
        ask('GET', 'http://127.0.0.1:8200/v1/auth/token/lookup-self', {
          'X-Vault-Token': w.VAULT,
          [name]: '5m',
        }),
      )
    expect(lookUp('X-Vault-Request')).toBe('inject')
    expect(lookUp('X-Vault-Wrap-TTL')).toBe('denied')
    expect(lookUp('x_vault_wrap_ttl')).toBe('denied')
  })
})

test('no id, token or placeholder is recorded', () => {
  const template = (path: string) => {
    const use = w.useOf('api', API, { allow: [w.every('/**')] })
    const wide = createRules([w.heldOf({ name: 'x', uses: [use], fields: { '': [w.GITHUB, 'secret'] } })])
    const verdict = wide.decide(ask('GET', `${API}${path}`, bearer))
    return 'template' in verdict ? verdict.template : verdict
  }
  const shown = [
    '/',
    '/v1/messages',
    '/repos/acme/shop-2/pulls',
    '/2015-03-31/functions',
    '/.well-known/x',
    '/a/',
    '/api/v4/x',
  ]
  expect(shown.map(template)).toEqual(shown)
  const hidden = [
    ...[
      '12345',
      '6f1c4a52-9c0e-4f0e-8a0b-0d9c3b6a7f11',
      'deadbeef01',
      'ghp_abcDEF123456',
      'T024BE7LD',
      'msg_01XyZabcdefG',
    ],
    ...[
      'xoxbAbCdEfGhIjKlMnOpQrSt',
      'a'.repeat(65),
      'me@example.com',
      'a;token=b',
      'k=v',
      'AKIAIOSFODNN7EXAMPLE',
      '%E4%B8%AD',
    ],
    ...['eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln', '%31%32%33%34', '**'],
  ]
  for (const one of hidden) expect(template(`/a/${one}/b`), one).toBe('/a/*/b')
  expect(template(`/${'long/'.repeat(300)}`)).toMatch(/^\/(?:long\/){90,102}\*\*$/)
  expect(template('/a?token=secret')).toBe('/a')
})
