import { describe, expect, it } from 'vitest'
import { type Fields, FORM, JWT_BEARER } from '../../../../test/support/oauth-calls.ts'
import { ada, app, calls, useOAuthWorld } from '../../../../test/support/oauth-world.ts'

useOAuthWorld()

describe('hostile forms', () => {
  const id = () => `client_id=${ada.agent.clientId}`
  const secret = () => `client_secret=${ada.clientSecret}`
  const good = () => `grant_type=client_credentials&${id()}&${secret()}`
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
  const pair = () => `${ada.agent.clientId}:${ada.clientSecret}`

  const cases: [string, () => [form: string, headers?: Fields, path?: string], number, string][] = [
    ['an empty body', () => [''], 400, 'invalid_request'],
    ['no grant type', () => [`${id()}&${secret()}`], 400, 'invalid_request'],
    ['an empty grant type', () => [`grant_type=&${id()}&${secret()}`], 400, 'invalid_request'],
    [
      'password grant',
      () => [good().replace('client_credentials', 'password')],
      400,
      'unsupported_grant_type',
    ],
    [
      'refresh grant',
      () => [good().replace('client_credentials', 'refresh_token')],
      400,
      'unsupported_grant_type',
    ],
    [
      'grant in capitals',
      () => [good().replace('client_credentials', 'CLIENT_CREDENTIALS')],
      400,
      'unsupported_grant_type',
    ],
    [
      'grant with a space',
      () => [good().replace('client_credentials', 'client_credentials+')],
      400,
      'unsupported_grant_type',
    ],
    ['a repeated grant type', () => [`${good()}&grant_type=client_credentials`], 400, 'invalid_request'],
    ['a repeated secret', () => [`${good()}&${secret()}`], 400, 'invalid_request'],
    ['a repeated empty secret', () => [`${good()}&client_secret=`], 400, 'invalid_request'],
    ['a repeated scope', () => [`${good()}&scope=db:read&scope=tokens`], 400, 'invalid_request'],
    [
      'a repeated resource',
      () => [`${good()}&resource=sts.example&resource=sts.example`],
      400,
      'invalid_request',
    ],
    ['a name encoded to hide a repetition', () => [`${good()}&%63lient_id=x`], 400, 'invalid_request'],
    ['a nameless field', () => [`${good()}&=x`], 400, 'invalid_request'],
    ['NUL in a value', () => [`${good()}&scope=db%00`], 400, 'invalid_request'],
    ['NUL in a name', () => [`${good()}&sco%00pe=db`], 400, 'invalid_request'],
    ['a line break', () => [`${good()}&scope=db%0d%0aX:1`], 400, 'invalid_request'],
    ['a raw line break', () => [`${good()}\n`], 400, 'invalid_request'],
    ['bad escape', () => [`${good()}&scope=%zz`], 400, 'invalid_request'],
    ['half an escape', () => [`${good()}&scope=%4`], 400, 'invalid_request'],
    ['overlong UTF-8', () => [`${good()}&scope=%c0%af`], 400, 'invalid_request'],
    ['a lone surrogate', () => [`${good()}&scope=%ed%a0%80`], 400, 'invalid_request'],
    ['raw UTF-8', () => [`${good()}&scope=é`], 400, 'invalid_request'],
    ['a scope outside ASCII', () => [`${good()}&scope=%c3%a9`], 400, 'invalid_scope'],
    [
      'too many fields',
      () => [`${good()}&${Array.from({ length: 64 }, (_, n) => `x${n}=1`).join('&')}`],
      400,
      'invalid_request',
    ],
    ['too long', () => [`${good()}&x=${'x'.repeat(70_000)}`], 413, 'invalid_request'],
    [
      'sixty-five scopes',
      () => [`${good()}&scope=${Array.from({ length: 65 }, (_, n) => `db:read:${n}`).join('+')}`],
      400,
      'invalid_scope',
    ],
    ['a long scope', () => [`${good()}&scope=db:read:${'x'.repeat(300)}`], 400, 'invalid_scope'],
    ['a leading space in the scope', () => [`${good()}&scope=+db:read`], 400, 'invalid_scope'],
    ['a comma list', () => [`${good()}&scope=db:read,tokens`], 400, 'invalid_scope'],
    ['openid as a prefix', () => [`${good()}&scope=openid:x`], 400, 'invalid_scope'],
    [
      'JSON',
      () => ['{"grant_type":"client_credentials"}', { 'content-type': 'application/json' }],
      415,
      'invalid_request',
    ],
    ['JSON called a form', () => ['{"grant_type":"client_credentials"}'], 401, 'invalid_client'],
    ['multipart', () => ['x', { 'content-type': 'multipart/form-data; boundary=x' }], 415, 'invalid_request'],
    ['no type', () => [good(), { 'content-type': '' }], 415, 'invalid_request'],
    [
      'another charset',
      () => [good(), { 'content-type': `${FORM['content-type']}; charset=utf-16` }],
      415,
      'invalid_request',
    ],
    ['a compressed body', () => [good(), { 'content-encoding': 'gzip' }], 415, 'invalid_request'],
    [
      'a secret in the address',
      () => ['grant_type=client_credentials', {}, `/oauth/token?${id()}&${secret()}`],
      400,
      'invalid_request',
    ],
    ['any query', () => [good(), {}, '/oauth/token?x=1'], 400, 'invalid_request'],
    ['no client', () => ['grant_type=client_credentials'], 401, 'invalid_client'],
    ['an id alone', () => [`grant_type=client_credentials&${id()}`], 401, 'invalid_client'],
    ['a secret alone', () => [`grant_type=client_credentials&${secret()}`], 400, 'invalid_request'],
    ['post and Basic', () => [good(), basic(pair())], 400, 'invalid_request'],
    ['post and Bearer', () => [good(), { authorization: `Bearer ${ada.token}` }], 400, 'invalid_request'],
    [
      'post and an assertion',
      () => [`${good()}&client_assertion=x&client_assertion_type=${JWT_BEARER}`],
      400,
      'invalid_request',
    ],
    [
      'Basic and an assertion',
      () => [`grant_type=client_credentials&client_assertion=x`, basic(pair())],
      400,
      'invalid_request',
    ],
    [
      'Basic and another id',
      () => ['grant_type=client_credentials&client_id=x', basic(pair())],
      400,
      'invalid_request',
    ],
    ['half an assertion', () => [`grant_type=client_credentials&client_assertion=x`], 400, 'invalid_request'],
    [
      'the other half',
      () => [`grant_type=client_credentials&client_assertion_type=${JWT_BEARER}`],
      400,
      'invalid_request',
    ],
    [
      'Bearer',
      () => ['grant_type=client_credentials', { authorization: `Bearer ${ada.token}` }],
      401,
      'invalid_client',
    ],
    ['Basic without a colon', () => ['grant_type=client_credentials', basic('x')], 401, 'invalid_client'],
    [
      'Basic without an id',
      () => ['grant_type=client_credentials', basic(`:${ada.clientSecret}`)],
      401,
      'invalid_client',
    ],
    [
      'Basic that is not base64',
      () => ['grant_type=client_credentials', { authorization: 'Basic ***' }],
      401,
      'invalid_client',
    ],
    [
      'Basic in base64url',
      () => ['grant_type=client_credentials', { authorization: 'Basic fn5-fn5_' }],
      401,
      'invalid_client',
    ],
    [
      'Basic with a bad escape',
      () => ['grant_type=client_credentials', basic('a%zz:b')],
      401,
      'invalid_client',
    ],
    ['Basic with NUL', () => ['grant_type=client_credentials', basic(`${pair()}\0`)], 401, 'invalid_client'],
    [
      'Basic with bad UTF-8',
      () => ['grant_type=client_credentials', { authorization: 'Basic //79OnA=' }],
      401,
      'invalid_client',
    ],
    [
      'Basic twice encoded',
      () => ['grant_type=client_credentials', basic(encodeURIComponent(encodeURIComponent(pair())))],
      401,
      'invalid_client',
    ],
    [
      'Basic with a space around',
      () => ['grant_type=client_credentials', basic(`${pair()} `)],
      401,
      'invalid_client',
    ],
    [
      'no token to introspect',
      () => [`${id()}&${secret()}`, {}, '/oauth/introspect'],
      400,
      'invalid_request',
    ],
    [
      'two tokens to introspect',
      () => [`${id()}&${secret()}&token=a&token=b`, {}, '/oauth/introspect'],
      400,
      'invalid_request',
    ],
    [
      'a stranger introspecting',
      () => [`token=${ada.token}`, {}, '/oauth/introspect'],
      401,
      'invalid_client',
    ],
    [
      'a bearer introspecting',
      () => ['token=x', { authorization: `Bearer ${ada.token}` }, '/oauth/introspect'],
      401,
      'invalid_client',
    ],
    ['no token to revoke', () => [`${id()}&${secret()}`, {}, '/oauth/revoke'], 400, 'invalid_request'],
    ['a stranger revoking', () => ['token=x', {}, '/oauth/revoke'], 401, 'invalid_client'],
  ]

  it.each(cases)('%s', async (_name, make, status, error) => {
    const [form, headers, path] = make()
    const answer = await calls.post(path ?? '/oauth/token', form, headers)
    expect([answer.status, answer.body]).toEqual([
      status,
      { error, error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/) },
    ])
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' })
    for (const part of [ada.clientSecret, ada.token]) expect(answer.text).not.toContain(part)
  })

  it('ignores what it does not know, as RFC 6749 §3.2 asks', async () => {
    expect((await calls.post('/oauth/token', `${good()}&device_id=1&__proto__=x&constructor=y`)).status).toBe(
      200,
    )
    const hinted = `${id()}&${secret()}&token=${ada.token}&token_type_hint=pin`
    expect((await calls.post('/oauth/introspect', hinted)).body).toMatchObject({ active: true })
  })

  it.each(['GET', 'PUT', 'DELETE', 'PATCH'] as const)('answers no %s', async (method) => {
    for (const url of ['/oauth/token', '/oauth/introspect', '/oauth/revoke']) {
      const answer = await app.server.inject({ method, url })
      expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'POST'])
      expect(answer.json()).toMatchObject({ error: 'invalid_request' })
    }
  })

  it('left no secret in the log or the audit', async () => {
    const all = JSON.stringify(await app.core.store.audit.query({}, 1_000)) + app.logged()
    for (const part of [ada.clientSecret, ada.token]) expect(all).not.toContain(part)
    expect(all).not.toMatch(/eyJ[\w-]+\.|ck[rs]_/)
  })
})
