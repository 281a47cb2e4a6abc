import { describe, expect, it, test } from 'vitest'
import type { Applied, Asked, Refused, Verdict } from '../../src/proxy/rules/asked.ts'
import { createRules } from '../../src/proxy/rules/decide.ts'
import * as w from './rules-world.ts'

const rules = createRules(w.WORLD)
const { ask } = w

function applied(verdict: Verdict): Applied | Refused {
  if (verdict.kind === 'inject') return verdict.apply(w.liveOf(verdict.held))
  if (verdict.kind === 'refuse') return verdict
  return verdict.clean()
}
const sent = (asked: Asked) => {
  const found = applied(rules.decide(asked))
  if ('kind' in found) throw new Error(found.reason)
  return { target: found.target, ...Object.fromEntries(found.headers) }
}
const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
const bearer = { Authorization: `Bearer ${w.GITHUB}` }
const API = 'https://api.github.example'

describe('puts the secret into', () => {
  it.each([
    ['Bearer ', 'authorization'],
    ['token ', 'Authorization'],
    ['', 'AUTHORIZATION'],
  ])('a header after %j', (scheme, name) => {
    const asked = ask('GET', `${API}/repos/acme/shop/issues?state=open`, { [name]: `${scheme}${w.GITHUB}` })
    expect(rules.decide(asked)).toMatchObject({
      kind: 'inject',
      template: '/repos/acme/shop/issues',
      places: [{ in: 'header' }],
      placeholders: [{ name: 'github' }],
    })
    expect(sent(asked)).toMatchObject({
      target: '/repos/acme/shop/issues?state=open',
      [name]: `${scheme}${w.GITHUB_SECRET}`,
      Host: 'api.github.example',
      'Accept-Encoding': 'identity',
    })
  })

  it('the password or the user of Basic', () => {
    const url = 'https://github.example/acme/shop.git/info/refs?service=git-upload-pack'
    expect(sent(ask('GET', url, { Authorization: basic('x-access-token', w.GITHUB) }))).toMatchObject({
      Authorization: basic('x-access-token', w.GITHUB_SECRET),
    })
    expect(sent(ask('GET', url, { Authorization: basic(w.GITHUB, '') }))).toMatchObject({
      Authorization: basic(w.GITHUB_SECRET, ''),
    })
  })

  it('Basic beside the user of the credential that lives now', () => {
    const asked = ask('POST', 'https://login.example/token', { Authorization: basic('old-user', w.CLIENT) })
    expect(sent(asked)).toMatchObject({ Authorization: basic('renewed-user', w.CLIENT_SECRET) })
  })

  it('a query, escaped, and leaves the rest byte for byte', () => {
    const asked = ask('GET', `https://model.example/v1/models?a=%7e+b&key=${w.MODEL}&c`)
    expect(sent(asked).target).toBe('/v1/models?a=%7e+b&key=sk-ant-api03-REALREALREALREAL%2F%2B%26&c')
  })

  it('a path, of which no part is recorded', () => {
    const asked = ask('POST', `https://bot.example/bot${w.BOT}/sendMessage`)
    expect(rules.decide(asked)).toMatchObject({ kind: 'inject', template: '/bot*/sendMessage' })
    expect(sent(asked).target).toBe(`/bot${w.BOT_SECRET}/sendMessage`)
  })

  it('plain HTTP of a local use', () => {
    const asked = ask('GET', 'http://127.0.0.1:8200/v1/x', { 'X-Vault-Token': w.VAULT })
    expect(sent(asked)).toMatchObject({ 'X-Vault-Token': 'hvs.REALREALREAL', Host: '127.0.0.1:8200' })
  })
})

describe('puts the secret into a body', () => {
  const decideBody = (type: string, body: string, headers: Record<string, string> = {}) => {
    const asked = ask('POST', 'https://login.example/token', {
      'Content-Type': type,
      'Content-Length': String(Buffer.byteLength(body)),
      ...headers,
    })
    const verdict = rules.decide(asked)
    if (verdict.kind !== 'inject_body') throw new Error(verdict.kind)
    const read = verdict.readBody(Buffer.from(body))
    if (read === null || 'reason' in read) return read
    const done = read.apply(w.liveOf(read.held))
    if ('reason' in done) return done
    return { body: done.body.toString(), length: Object.fromEntries(done.headers)['Content-Length'] }
  }
  const form = 'application/x-www-form-urlencoded'

  it('that is a form', () => {
    expect(decideBody(form, `a=%7e&client_secret=${w.CLIENT}&b=+`)).toEqual({
      body: 'a=%7e&client_secret=real%26client%3D%22secret%22%2F%2B%20%C3%A9&b=+',
      length: '67',
    })
  })

  it('that is JSON, in which numbers and spaces stay', () => {
    const body = `{ "n": 12345678901234567890, "o": {"client_secret": [1]}, "client_secret" : "${w.CLIENT}" }`
    expect(decideBody('application/json; charset=utf-8', body)).toMatchObject({
      body: body.replace(`"${w.CLIENT}"`, JSON.stringify(w.CLIENT_SECRET)),
    })
  })

  it('or forwards it as it is where there is no placeholder', () => {
    expect(decideBody(form, 'a=b')).toBeNull()
  })

  it('but not into one that is compressed, which the upstream would read and nobody has', () => {
    const at = (encoding: string, type = form) =>
      rules.decide(
        ask('POST', 'https://login.example/token', {
          ...{ 'Content-Type': type, 'Content-Length': '9', 'Content-Encoding': encoding },
        }),
      )
    for (const encoding of ['gzip', 'x-gzip', 'snappy', 'gzip, identity', 'identity, gzip'])
      expect(at(encoding)).toMatchObject({ kind: 'refuse', reason: 'bad_encoding' })
    expect(at('Identity').kind).toBe('inject_body')
    expect(at('gzip', 'text/plain').kind).toBe('forward')
  })

  it.each([
    ['another field', form, `secret=${w.CLIENT}`, 'misplaced'],
    ['a part of a field', form, `client_secret=x${w.CLIENT}`, 'misplaced'],
    ['a name', form, `client_secret=${w.CLIENT}&${w.CLIENT}=1`, 'misplaced'],
    ['the same field twice', form, `client_secret=a&client_secret=${w.CLIENT}`, 'bad_body'],
    ['an inner object', 'application/json', `{"a":{"client_secret":"${w.CLIENT}"}}`, 'misplaced'],
    ['an array', 'application/json', `[{"client_secret":"${w.CLIENT}"}]`, 'bad_body'],
    [
      'JSON with a name twice',
      'application/json',
      `{"client_secret":1,"client_secret":"${w.CLIENT}"}`,
      'bad_body',
    ],
    [
      'JSON with an escaped name twice',
      'application/json',
      `{"client\\u005fsecret":1,"client_secret":"${w.CLIENT}"}`,
      'bad_body',
    ],
    ['what is no JSON', 'application/json', `{"client_secret":"${w.CLIENT}"`, 'bad_body'],
    ['two places', form, `client_secret=${w.CLIENT}&a=${w.CLIENT}`, 'misplaced'],
    ['base64', form, `client_secret=${Buffer.from(`:${w.CLIENT}`).toString('base64')}`, 'misplaced'],
    ['a body that another place is for', form, `client_secret=${w.GITHUB}`, 'misplaced'],
    ['a body that is too long', form, `client_secret=${w.CLIENT}&a=${'a'.repeat(5_000)}`, 'misplaced'],
  ])('but not into %s', (_name, type, body, reason) => {
    expect(decideBody(type, body)).toMatchObject({ kind: 'refuse', reason })
  })
})

describe('a signature of AWS', () => {
  const scope = (service: string, id = w.KEY_ID) => `${id}/20261127/eu-west-1/${service}/aws4_request`
  const header = (service: string, id?: string) =>
    `AWS4-HMAC-SHA256 Credential=${scope(service, id)}, SignedHeaders=host;x-amz-date, Signature=abc`
  const bucket = 'https://bucket.s3.aws.example/a//b%2Fc'

  it('is made anew where the service is allowed', () => {
    const headers = { Authorization: header('s3'), 'X-Amz-Security-Token': w.SESSION }
    const verdict = rules.decide(ask('PUT', bucket, headers))
    expect(verdict).toMatchObject({ kind: 'sign', service: 's3', placeholder: { name: 'aws.id' } })
    const escaped = encodeURIComponent(scope('s3'))
    const query = `?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${escaped}&X-Amz-Security-Token=${w.SESSION}`
    expect(rules.decide(ask('GET', `${bucket}${query}`))).toMatchObject({ kind: 'sign', service: 's3' })
  })

  it.each([
    ['a denied service', { Authorization: header('sts') }, 'service_not_allowed'],
    ['no service', { Authorization: header('') }, 'bad_signature'],
    ['a service in capitals', { Authorization: header('STS') }, 'bad_signature'],
    ['another scope', { Authorization: header('s3/sts') }, 'bad_signature'],
    ['SigV4A', { Authorization: header('s3').replace('AWS4-HMAC', 'AWS4-ECDSA-P256') }, 'misplaced'],
    ['the secret key in it', { Authorization: header('s3'), 'X-A': w.SECRET_KEY }, 'misplaced'],
    ['the token elsewhere', { Authorization: header('s3'), 'X-A': w.SESSION }, 'misplaced'],
    ['the secret key as id', { Authorization: header('s3', w.SECRET_KEY) }, 'misplaced'],
    ['the id twice', { Authorization: `${header('s3')} ${w.KEY_ID}` }, 'misplaced'],
  ])('is refused with %s', (_name, headers, reason) => {
    expect(rules.decide(ask('PUT', bucket, headers))).toMatchObject({ kind: 'refuse', reason })
  })

  it('takes no longer to read where it is nothing but commas', () => {
    const asked = ask('PUT', bucket, {
      Authorization: `AWS4-HMAC-SHA256 ${', '.repeat(34)}`,
      'X-Amz-Security-Token': w.SESSION,
    })
    const before = performance.now()
    expect(rules.decide(asked)).toMatchObject({ kind: 'refuse', reason: 'misplaced' })
    // With a step for each way to divide them: two to the power of their number.
    expect(performance.now() - before).toBeLessThan(1_000)
  })
})

test('judges a request without a placeholder by the same rules, and sends it without a secret', () => {
  const url = 'https://github.example/acme/shop.git/info/refs'
  expect(rules.decide(ask('GET', url))).toMatchObject({ kind: 'forward', use: { name: 'git' } })
  expect(rules.decide(ask('GET', 'https://github.example/acme/other.git/info/refs'))).toMatchObject({
    reason: 'path_not_allowed',
  })
  expect(rules.decide(ask('GET', 'https://elsewhere.example/any/..%2fpath'))).toMatchObject({
    kind: 'forward',
    template: null,
    held: undefined,
  })
})

test('the placeholder says which of two credentials for one authority is used', () => {
  const url = `${API}/repos/acme/shop/pulls`
  const second = ask('GET', url, { Authorization: `Bearer ${w.OTHER_GITHUB}` })
  expect(sent(second)).toMatchObject({ Authorization: 'Bearer ghp_SECONDSECONDSECOND' })
  const both = ask('GET', url, { ...bearer, 'X-Other': w.OTHER_GITHUB })
  expect(rules.decide(both)).toMatchObject({ reason: 'two_credentials' })
})

test('an administrator denies first, then allows, and the kind comes after', () => {
  const reason = (method: string, path: string) => {
    const verdict = rules.decide(ask(method, `${API}${path}`, bearer))
    return verdict.kind === 'refuse' ? verdict.reason : verdict.kind
  }
  expect(reason('POST', '/graphql')).toBe('inject')
  expect(reason('GET', '/graphql')).toBe('denied')
  expect(reason('GET', '/repos/acme/shop/keys')).toBe('denied')
  expect(reason('GET', '/user/1/tokens')).toBe('denied')
  expect(reason('GET', '/user/1')).toBe('inject')
  expect(reason('DELETE', '/repos/acme/shop')).toBe('method_not_allowed')
  expect(reason('GET', '/repos/acme/other')).toBe('path_not_allowed')
})

test('a scoped package of npm is one segment', () => {
  const headers = { Authorization: `Bearer ${w.REGISTRY}` }
  const kind = (path: string) => rules.decide(ask('GET', `https://registry.example${path}`, headers))
  expect(kind('/@acme%2fshop')).toMatchObject({ kind: 'inject', template: '/@acme%2fshop' })
  expect(kind('/@acme/shop')).toMatchObject({ reason: 'path_not_allowed' })
  expect(kind('/@other%2fshop')).toMatchObject({ reason: 'path_not_allowed' })
  expect(kind('/-%2fwhoami')).toMatchObject({ reason: 'path_not_allowed' })
  expect(kind('/-/a%2fb')).toMatchObject({ reason: 'slash_not_allowed' })
})

test('a base URL has its own Host, and the upstream gets its', () => {
  const site = { listener: ['127.0.0.1:41213'] }
  const headers = { Host: '127.0.0.1:41213', ...bearer }
  expect(sent(ask('GET', `${API}/public/x`, headers, site))).toMatchObject({ Host: 'api.github.example' })
  for (const host of ['api.github.example', '127.0.0.1:41214', '127.0.0.1', 'evil.example:41213']) {
    expect(rules.decide(ask('GET', `${API}/public/x`, { ...headers, Host: host }, site)), host).toMatchObject(
      {
        reason: 'wrong_host',
      },
    )
  }
})

test('refuses a credential whose secret does not fit', () => {
  const held = w.heldOf({ name: 'x', uses: w.WORLD[0].uses, fields: { '': [w.GITHUB, 'two\r\nlines'] } })
  const verdict = createRules([held]).decide(ask('GET', `${API}/public/x`, bearer))
  expect(verdict.kind === 'inject' && verdict.apply(held.live)).toMatchObject({ reason: 'unfit_secret' })
})

test('an unreadable use is nowhere, and one with a fault allows nothing', () => {
  const use = { ...w.useOf('api', API), allow: [w.every('/**'), w.every('no slash')] }
  const held = w.heldOf({ name: 'x', uses: [use], fields: { '': [w.GITHUB, 'secret'] } })
  expect(createRules([held]).decide(ask('GET', `${API}/`, bearer))).toMatchObject({
    reason: 'path_not_allowed',
  })
  const nowhere = { ...held, uses: [{ ...use, origin: `${API}/path` }] }
  expect(createRules([nowhere]).decide(ask('GET', `${API}/`, bearer))).toMatchObject({ reason: 'elsewhere' })
})
