import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { confirmedText } from '../../domain/people/canonical-request.ts'
import type { PasskeyConfirmation, SsoConfirmation } from '../../domain/people/confirmation.ts'
import { confirmationIn, faultOf } from './verify-confirmation.ts'

const AT = Date.parse('2026-11-24T12:00:00.000Z')
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()
const bytes = (data: Buffer) =>
  Buffer.concat([
    data.length < 256
      ? Buffer.from([0x58, data.length])
      : Buffer.from([0x59, data.length >> 8, data.length & 255]),
    data,
  ])
const part = (text: string | undefined) => bytes(Buffer.from(text ?? '', 'base64url'))

const KEYS: Record<string, () => { cose: Buffer; privateKey: KeyObject; hash: 'sha256' | null }> = {
  'P-256': () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const { x, y } = publicKey.export({ format: 'jwk' })
    const cose = Buffer.concat([
      Buffer.from('a5010203262001' + '21', 'hex'),
      part(x),
      Buffer.from('22', 'hex'),
      part(y),
    ])
    return { cose, privateKey, hash: 'sha256' }
  },
  Ed25519: () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const { x } = publicKey.export({ format: 'jwk' })
    return { cose: Buffer.concat([Buffer.from('a401010327200621', 'hex'), part(x)]), privateKey, hash: null }
  },
  RSA: () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const { n, e } = publicKey.export({ format: 'jwk' })
    const cose = Buffer.concat([
      Buffer.from('a4010303390100' + '20', 'hex'),
      part(n),
      Buffer.from('21', 'hex'),
      part(e),
    ])
    return { cose, privateKey, hash: 'sha256' }
  },
}

function kept(
  kind: string,
  change: { client?: object; flags?: number; rpId?: string; request?: string } = {},
): PasskeyConfirmation {
  const { cose, privateKey, hash } = (KEYS[kind] ?? KEYS['RSA'])?.() ?? {
    cose: Buffer.alloc(0),
    privateKey: undefined as never,
    hash: null,
  }
  const asked = { method: 'DELETE', path: '/v1/admin/agents/ci', body: null }
  const request = confirmedText(asked, { nonce: 'n', time: '2026-11-24T11:59:00.000Z' })
  const client = Buffer.from(
    JSON.stringify({
      type: 'webauthn.get',
      challenge: sha256(request).toString('base64url'),
      origin: 'https://mayfly.test',
      ...change.client,
    }),
  )
  const data = Buffer.concat([
    sha256(change.rpId ?? 'mayfly.test'),
    Buffer.from([change.flags ?? 5, 0, 0, 0, 1]),
  ])
  return {
    request: change.request ?? request,
    passkeyId: 'pk_1',
    publicKey: cose.toString('base64url'),
    clientDataJson: client.toString('base64url'),
    authenticatorData: data.toString('base64url'),
    signature: sign(hash, Buffer.concat([data, sha256(client)]), privateKey).toString('base64url'),
    rpId: 'mayfly.test',
    origin: 'https://mayfly.test',
  }
}

describe('faultOf', () => {
  test.each(Object.keys(KEYS))('accepts a confirmation by a key of %s', (kind) => {
    expect(faultOf(kept(kind), AT)).toBeUndefined()
  })

  test.each<[string, PasskeyConfirmation]>([
    [
      'another request',
      kept('P-256', {
        request: confirmedText(
          { method: 'DELETE', path: '/other', body: null },
          { nonce: 'n', time: '2026-11-24T11:59:00.000Z' },
        ),
      }),
    ],
    ['a registration', kept('P-256', { client: { type: 'webauthn.create' } })],
    ['another origin', kept('P-256', { client: { origin: 'https://evil.test' } })],
    ['a frame of another page', kept('P-256', { client: { crossOrigin: true } })],
    ['another relying party', kept('P-256', { rpId: 'evil.test' })],
    ['nobody present', kept('P-256', { flags: 4 })],
    ['nobody verified', kept('P-256', { flags: 1 })],
    ['another key', { ...kept('P-256'), publicKey: kept('P-256').publicKey }],
    ['a key of another kind', { ...kept('P-256'), publicKey: kept('Ed25519').publicKey }],
    ['no key', { ...kept('P-256'), publicKey: '' }],
    ['a key that is no map', { ...kept('P-256'), publicKey: 'gA' }],
    ['a key that ends early', { ...kept('P-256'), publicKey: 'pQEC' }],
    ['another signature', { ...kept('P-256'), signature: kept('P-256').signature }],
    ['short data', { ...kept('P-256'), authenticatorData: 'AAAA' }],
    ['no client data', { ...kept('P-256'), clientDataJson: 'AAAA' }],
  ])('refuses %s', (_, one) => {
    expect(faultOf(one, AT)).toBeTypeOf('string')
  })

  test('refuses a confirmation of another time', () => {
    expect(faultOf(kept('P-256'), AT + 3_600_000)).toBe('it was confirmed at another time')
  })
})

test.each([
  null,
  undefined,
  {},
  { confirmation: null },
  { confirmation: {} },
  { confirmation: { request: 1 } },
])('there is no confirmation in %j', (details) => {
  expect(confirmationIn(details)).toBeUndefined()
})

describe('a confirmation by another login', () => {
  const AT = Date.parse('2026-01-01T00:01:00.000Z')
  const request = JSON.stringify({ method: 'POST', path: '/v1/x', time: '2026-01-01T00:00:00.000Z' })
  const nonce = createHash('sha256').update(request).digest('base64url')
  const [asked, second] = [AT / 1_000 - 60, 1]
  const sso = {
    issuer: 'https://a.test',
    subject: 's',
    audience: 'mayfly',
    authTime: asked + 30,
    issuedAt: asked + 31,
  }
  const kept = { request, nonce, sso }

  test('holds, also where the clock of the provider is some seconds behind', () => {
    expect(confirmationIn({ confirmation: kept })).toEqual(kept)
    expect(faultOf(kept, AT)).toBeUndefined()
    expect(faultOf({ ...kept, sso: { ...sso, authTime: asked - 5 * second } }, AT)).toBeUndefined()
  })

  test.each<[string, SsoConfirmation, number]>([
    ['for another request', { ...kept, request: request.replace('/v1/x', '/v1/y') }, AT],
    ['with another nonce', { ...kept, nonce: 'x' }, AT],
    ['before it was asked for', { ...kept, sso: { ...sso, authTime: asked - 6 } }, AT],
    ['after the act', { ...kept, sso: { ...sso, issuedAt: asked + 66 } }, AT],
    ['long ago', kept, AT + 3_600_000],
  ])('does not hold: %s', (_, changed, at) => {
    expect(faultOf(changed, at)).toBeTypeOf('string')
  })

  test.each<[string, object]>([
    ['without a nonce', { request, sso }],
    ['without a time', { ...kept, sso: { ...sso, authTime: undefined } }],
    ['with a time in words', { ...kept, sso: { ...sso, authTime: 'now' } }],
  ])('is none: %s', (_, confirmation) => {
    expect(confirmationIn({ confirmation })).toBeUndefined()
  })
})
