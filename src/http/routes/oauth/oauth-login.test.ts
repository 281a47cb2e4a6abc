import { createPrivateKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { LOCAL } from '../../../../test/support/oauth-app.ts'
import { type Fields, JWT_BEARER, secretOf } from '../../../../test/support/oauth-calls.ts'
import { ada, app, calls, useOAuthWorld } from '../../../../test/support/oauth-world.ts'
import type { CreatedAgent } from '../../../core/agents/create-agent.ts'
import { deleteAgent } from '../../../core/agents/end-agent.ts'
import { MINUTE_MS } from '../../../domain/limits.ts'

useOAuthWorld()
// The limits are per minute: on a busy machine the tests take long enough to be allowed more.
beforeAll(() => app.freeze())

describe('a client with a wrong identity', () => {
  it('learns nothing from the answer', async () => {
    const gone = await app.createAgent({ name: 'gone' })
    const short = await app.createAgent({ name: 'short', lifetimeMs: 1_000 })
    await calls.token(gone)
    await deleteAgent(app.core, LOCAL, 'gone')
    app.advance(2_000)
    const wrong = `cks_${'0'.repeat(64)}`
    const answers = await Promise.all([
      calls.token(gone),
      calls.token(short),
      calls.token(ada, { client_secret: wrong }),
      calls.token(ada, { client_secret: 'x' }),
      calls.token(ada, { client_id: app.core.ids.id('client') }),
      calls.token(ada, { client_id: 'ada' }),
      calls.token(ada, { client_id: ada.agent.id }),
      calls.token(ada, { client_id: `${ada.agent.clientId} ` }),
      calls.token(ada, { client_secret: ada.token }),
      calls.token(ada, { client_secret: '-'.repeat(43) }),
    ])
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set([`401 {"error":"invalid_client","error_description":"Client authentication failed."}`]),
    )
  })

  it('is stopped after ten failures of a client from an address, and the right secret still logs in', async () => {
    const target = await app.createAgent({ name: 'target' })
    const bad = { client_secret: 'guess' }
    for (let index = 0; index < 10; index += 1)
      expect((await calls.token(target, bad, '192.0.2.1')).status).toBe(401)
    const stopped = await calls.token(target, bad, '192.0.2.1')
    expect(stopped.status).toBe(429)
    expect(stopped.body).toMatchObject({ error: 'temporarily_unavailable' })
    expect(Number(stopped.headers['retry-after'])).toBeGreaterThan(0)
    expect((await calls.token(target, {}, '192.0.2.1')).status).toBe(200)
    expect((await calls.token(target, bad, '192.0.2.2')).status).toBe(401)
    expect((await calls.token(ada, bad, '192.0.2.1')).status).toBe(401)
    const elsewhere = { ...secretOf(target), ...bad, token: 'x' }
    expect((await calls.post('/oauth/introspect', elsewhere, {}, '192.0.2.1')).status).toBe(429)
    expect((await calls.post('/oauth/revoke', elsewhere, {}, '192.0.2.1')).status).toBe(429)
    app.advance(MINUTE_MS)
    expect((await calls.token(target, bad, '192.0.2.1')).status).toBe(401)
    const refused = (await app.audited('token.refused')).filter((row) => row.agentId === target.agent.id)
    expect(refused.at(-1)).toMatchObject({ outcome: 'denied', ipAddress: '192.0.2.1' })
  })

  it('is stopped for all addresses of one subscriber', async () => {
    const target = await app.createAgent({ name: 'target-6' })
    for (let host = 1; host <= 10; host += 1)
      expect((await calls.token(target, { client_secret: 'guess' }, `2001:db8::${host}`)).status).toBe(401)
    expect((await calls.token(target, { client_secret: 'guess' }, '2001:db8::ffff')).status).toBe(429)
    expect((await calls.token(target, { client_secret: 'guess' }, '2001:db8:0:1::1')).status).toBe(401)
  })

  it('is stopped after a hundred failures of an address, whatever clients it names, known or not', async () => {
    const target = await app.createAgent({ name: 'target-ids' })
    const guess = async (client_id: string, address = '192.0.2.7') => {
      const fields = { grant_type: 'client_credentials', client_id, client_secret: 'guess' }
      return (await calls.post('/oauth/token', fields, {}, address)).status
    }
    for (let index = 0; index < 100; index += 1) expect(await guess(app.core.ids.id('client'))).toBe(401)
    expect(await guess(app.core.ids.id('client'))).toBe(429)
    expect(await guess(target.agent.clientId)).toBe(429)
    expect(await guess(target.agent.clientId, '192.0.2.8')).toBe(401)
    expect((await calls.token(target, {}, '192.0.2.7')).status).toBe(200)
  })

  it('is stopped in a burst too, and successes do not count', async () => {
    const busy = await app.createAgent({ name: 'busy' })
    const good = await Promise.all(Array.from({ length: 30 }, () => calls.token(busy, {}, '192.0.2.3')))
    expect(good.every(({ status }) => status === 200)).toBe(true)
    const bad = await Promise.all(
      Array.from({ length: 30 }, () => calls.token(busy, { client_secret: 'guess' }, '192.0.2.3')),
    )
    expect(bad.filter(({ status }) => status === 401)).toHaveLength(10)
    expect(bad.filter(({ status }) => status === 429)).toHaveLength(20)
  })
})

describe('private_key_jwt', () => {
  const ed = generateKeyPairSync('ed25519')
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let edAgent: CreatedAgent
  let ecAgent: CreatedAgent
  let count = 0

  beforeAll(async () => {
    const jwkOf = (key: KeyObject) => key.export({ format: 'jwk' }) as Record<string, unknown>
    edAgent = await app.createAgent({ name: 'ed', scopes: ['db'], publicJwk: jwkOf(ed.publicKey) })
    ecAgent = await app.createAgent({ name: 'ec', scopes: ['db'], publicJwk: jwkOf(ec.publicKey) })
  })

  interface Wish {
    alg?: string
    header?: Record<string, unknown>
    claims?: Record<string, unknown>
  }
  const assertion = (agent: CreatedAgent, key: KeyObject, { alg = 'EdDSA', header, claims }: Wish = {}) => {
    count += 1
    const now = Math.floor(app.core.store.now() / 1000)
    const id = agent.agent.clientId
    const all = { iss: id, sub: id, aud: app.issuer, jti: `j${count}`, iat: now, exp: now + 60, ...claims }
    return new SignJWT(all).setProtectedHeader({ alg, ...header }).sign(key)
  }
  const login = (text: string, more: Fields = {}) =>
    calls.post('/oauth/token', {
      grant_type: 'client_credentials',
      client_assertion_type: JWT_BEARER,
      client_assertion: text,
      ...more,
    })

  it('logs in with either kind of key, with or without client_id', async () => {
    for (const alg of ['EdDSA', 'Ed25519'])
      expect((await login(await assertion(edAgent, ed.privateKey, { alg }))).status).toBe(200)
    const es = { alg: 'ES256', claims: { aud: `${app.issuer}/oauth/token` } }
    const named = { client_id: ecAgent.agent.clientId }
    expect((await login(await assertion(ecAgent, ec.privateKey, es), named)).status).toBe(200)
    const [entry] = await app.audited('token.issued')
    expect(entry).toMatchObject({ agentName: 'ec', authMethod: 'private_key_jwt' })
  })

  it('accepts an assertion once, at any endpoint, also when many arrive at once', async () => {
    const text = await assertion(edAgent, ed.privateKey)
    const answers = await Promise.all(Array.from({ length: 8 }, () => login(text)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const failed = answers.filter(({ status }) => status !== 200)
    expect(failed.every(({ body }) => body['error'] === 'invalid_client')).toBe(true)
    const { jti } = decodeJwt(String(answers.find((a) => a.status === 200)!.body['access_token']))
    expect((await app.audited('token.issued')).filter((row) => row.details?.['jti'] === jti)).toHaveLength(1)
    const second = {
      client_assertion_type: JWT_BEARER,
      client_assertion: await assertion(edAgent, ed.privateKey),
    }
    expect((await calls.post('/oauth/introspect', { ...second, token: edAgent.token })).body).toMatchObject({
      active: true,
    })
    expect((await calls.post('/oauth/introspect', { ...second, token: edAgent.token })).status).toBe(401)
    expect((await calls.post('/oauth/revoke', { ...second, token: 'x' })).status).toBe(401)
  })

  it('refuses an assertion with any fault', async () => {
    const now = Math.floor(app.core.store.now() / 1000)
    const [standInEd, standInEc] = standIns()
    const texts = await Promise.all([
      assertion(edAgent, generateKeyPairSync('ed25519').privateKey),
      assertion(ecAgent, ed.privateKey),
      // The keys of everybody that absent clients are checked against.
      assertion(ada, standInEd!),
      assertion(ada, standInEc!, { alg: 'ES256' }),
      assertion(edAgent, standInEc!, { alg: 'ES256' }),
      assertion(edAgent, ed.privateKey, { claims: { aud: 'https://other.example' } }),
      assertion(edAgent, ed.privateKey, { claims: { aud: `${app.issuer}/` } }),
      assertion(edAgent, ed.privateKey, { claims: { exp: now - 60 } }),
      assertion(edAgent, ed.privateKey, { claims: { exp: now + 3600 } }),
      assertion(edAgent, ed.privateKey, { claims: { exp: undefined } }),
      assertion(edAgent, ed.privateKey, { claims: { jti: undefined } }),
      assertion(edAgent, ed.privateKey, { claims: { jti: 'x'.repeat(129) } }),
      assertion(edAgent, ed.privateKey, { claims: { iss: ada.agent.clientId } }),
      assertion(edAgent, ed.privateKey, { claims: { sub: ada.agent.clientId } }),
      assertion(edAgent, ed.privateKey, { claims: { nbf: now + 600 } }),
      assertion(edAgent, ed.privateKey, { header: { typ: 'enrollment-proof+jwt' } }),
      assertion(edAgent, ed.privateKey, { header: { jwk: ed.publicKey.export({ format: 'jwk' }) } }),
    ])
    const [head, body] = (await assertion(edAgent, ed.privateKey)).split('.')
    texts.push(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`, `${head}.${body}.AAAA`, 'x')
    for (const text of texts)
      expect((await login(text)).body, text).toMatchObject({ error: 'invalid_client' })
    const other = await assertion(edAgent, ed.privateKey)
    expect((await login(other, { client_id: ecAgent.agent.clientId })).status).toBe(401)
    expect((await login(other, { client_assertion_type: 'urn:x' })).body).toMatchObject({
      error: 'invalid_client',
    })
    expect((await login(other)).status).toBe(200)
  })
})

/** The private halves: RFC 8037 A.1 prints the one, the other is 1. */
function standIns(): KeyObject[] {
  const okp = {
    kty: 'OKP',
    crv: 'Ed25519',
    d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A',
    x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  }
  const ec = {
    kty: 'EC',
    crv: 'P-256',
    d: Buffer.from('1'.padStart(64, '0'), 'hex').toString('base64url'),
    x: 'axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY',
    y: 'T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU',
  }
  return [okp, ec].map((key) => createPrivateKey({ key: key as JsonWebKey, format: 'jwk' }))
}
