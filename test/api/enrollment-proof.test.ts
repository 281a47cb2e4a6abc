import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { newEnrollee } from '../support/enrollee.ts'
import { code, decide, enroll, now, poll, test, useSharedCore } from '../support/enrollment.ts'
import { newEnrollment } from '../support/store.ts'

useSharedCore()
/** For an approved enrollment that nobody has collected. */
async function approved(me: ReturnType<typeof newEnrollee>, name: string): Promise<string> {
  const { id } = (await enroll(me, { name })).json
  await decide(id, 'approve')
  return id
}

describe('the proof', () => {
  const me = newEnrollee()
  const other = newEnrollee()
  const ec = newEnrollee('P-256')
  let id: string
  beforeAll(async () => {
    id = await approved(me, 'bot')
  })
  const at = (seconds: number) => Math.floor(now() / 1_000) + seconds
  const without = async (claim: string) => me.prove(id, now(), { change: { [claim]: undefined } })

  const rows: [string, () => Promise<string | undefined> | string | undefined][] = [
    ['absent', () => undefined],
    ['empty', () => ''],
    ['no JWS', () => 'eyJ'],
    ['another key', () => other.prove(id, now())],
    ['another key of another curve', () => ec.prove(id, now())],
    ['another enrollment', () => me.prove('enr_01m7y253p8e54bd2j94v1j84fc', now())],
    ['another audience', () => me.prove(id, now(), { change: { aud: 'https://evil.test' } })],
    ['our issuer with a slash', () => me.prove(id, now(), { change: { aud: 'https://mayfly.test/' } })],
    [
      'several audiences',
      () => me.prove(id, now(), { change: { aud: ['https://mayfly.test', 'https://x.test'] } }),
    ],
    ['too old', () => me.prove(id, now(), { change: { iat: at(-62) } })],
    ['from the future', () => me.prove(id, now(), { change: { iat: at(62) } })],
    ['iat as text', () => me.prove(id, now(), { change: { iat: String(at(0)) } })],
    ['iat in ms', () => me.prove(id, now(), { change: { iat: now() } })],
    ['without aud', () => without('aud')],
    ['without enr', () => without('enr')],
    ['without iat', () => without('iat')],
    ['without jti', () => without('jti')],
    ['without enc', () => without('enc')],
    ['jti too short', () => me.prove(id, now(), { change: { jti: '1' } })],
    ['jti too long', () => me.prove(id, now(), { change: { jti: 'j'.repeat(129) } })],
    ['jti as a number', () => me.prove(id, now(), { change: { jti: 12345678 } })],
    ['enc for signing', () => me.prove(id, now(), { change: { enc: me.publicKey } })],
    [
      'enc with a private part',
      () =>
        me.prove(id, now(), {
          change: { enc: generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' }) },
        }),
    ],
    [
      'enc of small order',
      () => me.prove(id, now(), { change: { enc: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } } }),
    ],
    ['enc null', () => me.prove(id, now(), { change: { enc: null } })],
    ['a header that brings its key', () => me.prove(id, now(), { header: { jwk: me.publicKey } })],
    ['a header with a url', () => me.prove(id, now(), { header: { jku: 'https://evil.test' } })],
    ['of the type of a login', () => me.prove(id, now(), { header: { typ: 'client-authentication+jwt' } })],
    [
      'HMAC by the public key',
      () =>
        me.prove(id, now(), {
          header: { alg: 'HS256' },
          key: Buffer.from(String(me.publicKey['x']), 'base64url'),
        }),
    ],
    [
      'alg none',
      () =>
        [{ alg: 'none' }, { aud: 'https://mayfly.test', enr: id, iat: at(0), jti: randomUUID() }, {}]
          .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
          .join('.'),
    ],
    ['a changed signature', async () => (await me.prove(id, now())).replace(/.{8}$/, 'AAAAAAAA')],
    ['two of them', async () => `${await me.prove(id, now())}, ${await me.prove(id, now())}`],
    ['as a bearer', async () => `Bearer ${await me.prove(id, now())}`],
    ['padded', async () => `${await me.prove(id, now())}=`],
  ]
  it.each(rows)('is refused for %s with the same bytes as for an unknown enrollment', async (_what, make) => {
    const proof = await make()
    const refused = await poll(id, proof)
    const unknown = await poll(
      'enr_01m7y253p8e54bd2j94v1j84fc',
      await me.prove('enr_01m7y253p8e54bd2j94v1j84fc', now()),
    )
    const shown = (reply: typeof refused) => {
      const { date, 'x-request-id': requestId, ...headers } = reply.headers
      return { status: reply.status, headers, text: reply.text.replace(String(requestId), 'req') }
    }
    expect(refused.status).toBe(401)
    expect(code(refused)).toBe('unauthorized')
    expect(shown(refused)).toEqual(shown(unknown))
    expect((await test.core.store.enrollments.find(id))?.collectedAt).toBeNull()
  })

  it('is accepted once', async () => {
    const own = await approved(me, 'once')
    const proof = await me.prove(own, now())
    expect((await poll(own, proof)).status).toBe(200)
    expect((await poll(own, proof)).status).toBe(401)
  })

  it('may be a minute old, and is remembered as long', async () => {
    const own = await approved(me, 'old')
    const proof = await me.prove(own, now() - 55_000)
    expect((await poll(own, proof)).status).toBe(200)
    for (const step of test.core.store.tokens.tidy(now())) await test.core.store.commit([step])
    expect((await poll(own, proof)).status).toBe(401)
  })

  it.each(['enr_', 'ENR_01m7y253p8e54bd2j94v1j84fc', `enr_${'z'.repeat(26)}`, '%27', 'x'.repeat(256)])(
    'is refused for the id %s',
    async (bad) => {
      expect((await poll(bad, await me.prove(bad, now()))).status).toBe(401)
    },
  )

  it('opens no request for more scopes', async () => {
    const row = newEnrollment({
      id: test.core.ids.id('enrollment'),
      type: 'amendment',
      publicJwk: null,
      agentId: 'ag_x',
    })
    await test.core.store.commit([test.core.store.enrollments.insert(row)])
    expect((await poll(row.id, await me.prove(row.id, now()))).status).toBe(401)
  })
})
