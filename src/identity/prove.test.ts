import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  claim,
  equal,
  identity,
  inline,
  newSigner,
  pattern,
  platform,
  presetIdentity,
  signPreset,
  times,
} from '../../test/support/identity-tokens.ts'
import { AUDIENCE, presetNames, presetToken } from '../../test/support/preset-tokens.ts'
import { type Identity, IdentityRefused, type Trusted } from '../domain/identity/identity.ts'
import { createIdentities } from './identities.ts'

const signer = newSigner('ES256')
const ISSUER = 'https://issuer.test'
/** Epoch ms, in the middle of a second. */
const NOW = 1_800_000_000_400
let now: number

const identities = createIdentities({
  lookup: () => Promise.reject(new Error('nothing is looked up here')),
  timeoutMs: 1_000,
  log: { warn: () => undefined },
  now: () => now,
})

const trust = (trusted: Partial<Trusted>) =>
  identities.setTrusted({ identities: [], platforms: [], ...trusted })
const entry = (name: string, more: Partial<Identity> = {}) =>
  identity(name, { keys: inline(signer), ...more })
const token = (claims: Readonly<Record<string, unknown>> = {}, header = {}) =>
  signer.sign({ iss: ISSUER, sub: 'job', aud: AUDIENCE, jti: 'j1', ...times(now), ...claims }, header)

async function refused(
  text: string,
): Promise<{ reason: string; entries: readonly string[]; detail?: string }> {
  try {
    const { entry: found } = await identities.prove(text)
    throw new Error(`accepted by ${JSON.stringify(found)}`)
  } catch (error) {
    if (!(error instanceof IdentityRefused)) throw error
    const { reason, entries, detail } = error
    return detail === undefined ? { reason, entries } : { reason, entries, detail }
  }
}

const nameOf = async (text: string) => {
  const { entry: found } = await identities.prove(text)
  return found.kind === 'identity' ? found.identity.name : found.platform.name
}

beforeEach(() => {
  now = NOW
  trust({ identities: [entry('ci')] })
})

describe('a token of each preset', () => {
  it.each(presetNames)('proves its workload: %s', async (name) => {
    const own = newSigner(presetToken(name).alg)
    const others = presetNames.filter((one) => one !== name).map((one) => presetIdentity(one, own))
    trust({ identities: [...others, presetIdentity(name, own)] })
    const proven = await identities.prove(signPreset(name, own, { now }))
    expect(proven).toMatchObject({
      entry: { kind: 'identity', identity: { name } },
      issuer: presetToken(name).issuer ?? 'spiffe://example.org',
      subject: presetToken(name).claims['sub'],
      expiresAt: Math.floor(now / 1_000) * 1_000 + 300_000,
    })
    expect(proven.claims).toMatchObject(presetToken(name).claims)
  })

  it.each(presetNames.filter((name) => presetToken(name).pinned.length > 0))(
    'is refused where what it pins is another: %s',
    async (name) => {
      const own = newSigner(presetToken(name).alg)
      for (const [at, [path]] of presetToken(name).pinned.entries()) {
        const claims = presetToken(name).pinned.map(([one, value], place) =>
          claim(one, equal(place === at ? `${value}0` : value)),
        )
        trust({ identities: [presetIdentity(name, own, { claims })] })
        const { reason, detail } = await refused(signPreset(name, own, { now }))
        expect({ reason, detail }).toEqual({ reason: 'claim', detail: `${name}: claims.${path}` })
      }
    },
  )
})

describe('whose token it is', () => {
  it('is asked first: of an unknown issuer nothing else is looked at', async () => {
    expect(await refused(token({ iss: 'https://other.test' }))).toEqual({
      reason: 'unknown_issuer',
      entries: [],
    })
    expect(await refused(token({ iss: 'https://other.test', exp: 'never' }))).toMatchObject({
      reason: 'unknown_issuer',
    })
    expect(await refused(token({ iss: undefined }))).toMatchObject({ reason: 'unknown_issuer' })
  })

  it.each<[string, Record<string, unknown>]>([
    ['an issuer that is no text', { iss: [ISSUER] }],
    ['a long issuer', { iss: `https://${'a'.repeat(250)}.test` }],
    ['no subject', { sub: undefined }],
    ['an empty subject', { sub: '' }],
    ['a subject that is no text', { sub: 7 }],
    ['a long subject', { sub: 'a'.repeat(1_025) }],
    ['a subject with a line end', { sub: 'job\nroot' }],
  ])('is malformed with %s', async (_, claims) => {
    expect(await refused(token(claims))).toMatchObject({ reason: 'malformed' })
  })

  it('is said by the keys of each entry for itself', async () => {
    const other = newSigner('ES256', signer.kid)
    trust({ identities: [entry('mine'), identity('theirs', { keys: inline(other) })] })
    expect(await nameOf(token())).toBe('mine')
    const stranger = newSigner('ES256', signer.kid)
    const forged = stranger.sign({ iss: ISSUER, sub: 'job', aud: AUDIENCE, ...times(now) })
    expect(await refused(forged)).toEqual({ reason: 'signature', entries: ['mine', 'theirs'] })
    const nameless = newSigner('ES256').sign({ iss: ISSUER, sub: 'job', aud: AUDIENCE, ...times(now) })
    expect(await refused(nameless)).toEqual({ reason: 'unknown_key', entries: ['mine', 'theirs'] })
  })

  it('is the trust domain where a JWT-SVID has no issuer, and the issuer it has is not believed', async () => {
    trust({ identities: [presetIdentity('spiffe', signer)] })
    for (const iss of [undefined, 'https://spire.test'])
      expect(await identities.prove(signPreset('spiffe', signer, { now, claims: { iss } }))).toMatchObject({
        issuer: 'spiffe://example.org',
      })
    const other = { sub: 'spiffe://example.org.evil.test/ns/agents/sa/worker' }
    expect(await refused(signPreset('spiffe', signer, { now, claims: other }))).toMatchObject({
      reason: 'unknown_issuer',
    })
  })
})

describe('the times of a token', () => {
  const seconds = Math.floor(NOW / 1_000)
  it.each<[string, Record<string, unknown>, string]>([
    ['ended a minute ago', { exp: seconds - 60 }, 'expired'],
    ['ended long ago', { iat: 1, nbf: 1, exp: 2 }, 'expired'],
    ['begins in more than a minute', { nbf: seconds + 62 }, 'not_yet_valid'],
    ['was made in more than a minute', { iat: seconds + 62, nbf: undefined }, 'not_yet_valid'],
    ['is older than ten minutes', { iat: seconds - 601 }, 'too_old'],
    ['does not end', { exp: undefined }, 'malformed'],
    ['says nothing of its age', { iat: undefined }, 'malformed'],
    ['ends at a text', { exp: String(seconds + 300) }, 'malformed'],
    ['ends at a list', { exp: [seconds + 300] }, 'malformed'],
    ['ends at null', { exp: null }, 'malformed'],
    ['ends after the year 9999', { exp: 253_402_300_800 }, 'malformed'],
    ['ends before 1970', { exp: -1 }, 'malformed'],
    ['was made at a text', { iat: String(seconds) }, 'malformed'],
    ['begins at null', { nbf: null }, 'malformed'],
  ])('are wrong: it %s', async (_, claims, reason) => {
    expect(await refused(token(claims))).toMatchObject({ reason })
  })

  it.each<[string, Record<string, unknown>]>([
    ['ended less than a minute ago', { iat: seconds - 300, exp: seconds - 59 }],
    ['begins within the minute', { nbf: seconds + 60 }],
    ['was made within the minute to come', { iat: seconds + 60 }],
    ['is not quite ten minutes old', { iat: seconds - 599 }],
    ['has no beginning', { nbf: undefined }],
    ['has times with a fraction', { iat: seconds - 0.5, exp: seconds + 299.5 }],
  ])('are right: it %s', async (_, claims) => {
    expect(await nameOf(token(claims))).toBe('ci')
  })

  it('may be older where the entry says so', async () => {
    trust({ identities: [entry('ci', { maxAgeMs: 86_400_000 })] })
    expect(await nameOf(token({ iat: seconds - 86_399 }))).toBe('ci')
    expect(await refused(token({ iat: seconds - 86_401 }))).toEqual({ reason: 'too_old', entries: ['ci'] })
  })

  it('bound a JWT-SVID without iat by its end', async () => {
    trust({ identities: [presetIdentity('spiffe', signer)] })
    const svid = (exp: number) => signPreset('spiffe', signer, { now, claims: { iat: undefined, exp } })
    expect(await nameOf(svid(seconds + 600))).toBe('spiffe')
    expect(await refused(svid(seconds + 602))).toMatchObject({ reason: 'too_old' })
  })
})

describe('which entry it is', () => {
  it('says the condition that failed of the entry that fits best', async () => {
    trust({
      identities: [
        entry('other-audience', { audience: 'https://other.test' }),
        entry('other-claim', { claims: [claim('run', equal('7'))] }),
        entry('other-subject', { subject: equal('other') }),
      ],
    })
    expect(await refused(token({ run: '8' }))).toEqual({
      reason: 'claim',
      entries: ['other-audience', 'other-claim', 'other-subject'],
      detail: 'other-claim: claims.run',
    })
  })

  it.each<[string, unknown, string | undefined]>([
    ['a list of exactly ours', [AUDIENCE], undefined],
    ['another', 'https://other.test', 'audience'],
    ['a list with ours second', ['https://other.test', AUDIENCE], 'audience'],
    ['a list with ours first', [AUDIENCE, 'https://other.test'], 'audience'],
    ['a list of ours twice', [AUDIENCE, AUDIENCE], 'audience'],
    ['an empty list', [], 'audience'],
    ['a list of lists', [[AUDIENCE]], 'audience'],
    ['ours with a slash', `${AUDIENCE}/`, 'audience'],
    ['ours in capitals', AUDIENCE.toUpperCase(), 'audience'],
    ['none', undefined, 'audience'],
    ['an object', { 0: AUDIENCE, length: 1 }, 'audience'],
  ])('by its audience: %s', async (_, aud, reason) => {
    trust({ identities: [entry('ci')], platforms: [platform('agents', { keys: inline(signer) })] })
    for (const iss of [ISSUER, 'https://platform.test']) {
      const text = token({ aud, iss })
      if (reason === undefined) expect(await identities.prove(text)).toMatchObject({ issuer: iss })
      else expect(await refused(text)).toMatchObject({ reason })
    }
  })

  it('is a refusal that names both where two match', async () => {
    trust({
      identities: [entry('one'), entry('two', { subject: equal('job') }), entry('three', { audience: 'x' })],
    })
    expect(await refused(token())).toEqual({ reason: 'ambiguous', entries: ['one', 'two'] })
  })

  it('is a refusal, too, where an entry and a platform match', async () => {
    trust({
      identities: [entry('one')],
      platforms: [platform('agents', { issuer: ISSUER, keys: inline(signer) })],
    })
    expect(await refused(token())).toEqual({ reason: 'ambiguous', entries: ['one', 'agents'] })
  })

  it('is not one that observes, where another matches', async () => {
    trust({ identities: [entry('watched', { mode: 'observe' }), entry('one')] })
    expect(await nameOf(token())).toBe('one')
  })

  it('is one that observes where no other matches, and that uses nothing up', async () => {
    trust({
      identities: [entry('watched', { mode: 'observe' }), entry('other', { subject: equal('other') })],
    })
    expect(await identities.prove(token())).toMatchObject({
      entry: { kind: 'identity', identity: { name: 'watched', mode: 'observe' } },
      use: undefined,
    })
    expect(await refused(token({ iat: Math.floor(now / 1_000) - 700 }))).toEqual({
      reason: 'too_old',
      entries: ['watched'],
    })
  })

  it('cannot be said while the keys of one that would match cannot be had', async () => {
    const away = { jwks: undefined, jwksUri: 'https://away.test/jwks', ca: undefined, local: false }
    trust({ identities: [entry('one'), identity('two', { keys: away })] })
    expect(await refused(token())).toMatchObject({ reason: 'keys_unavailable', entries: ['one', 'two'] })
    trust({ identities: [entry('one'), identity('two', { keys: away, subject: equal('other') })] })
    expect(await nameOf(token())).toBe('one')
  })
})

describe('a platform', () => {
  const agents = platform('agents', { keys: inline(signer) })
  beforeEach(() => trust({ platforms: [agents] }))
  const wag = (claims: Record<string, unknown> = {}) => token({ iss: 'https://platform.test', ...claims })

  it('proves whom it signs for, each token once', async () => {
    expect(await identities.prove(wag({ groups: ['ops'] }))).toMatchObject({
      entry: { kind: 'platform', platform: { name: 'agents' } },
      subject: 'job',
      claims: { groups: ['ops'] },
      use: { rememberUntil: expect.any(Number) },
    })
  })

  it('names its agents by printable text of at most 255 characters', async () => {
    expect(await refused(wag({ sub: 'a"b' }))).toMatchObject({ reason: 'subject', detail: 'agents: subject' })
    expect(await refused(wag({ sub: 'a'.repeat(256) }))).toMatchObject({ reason: 'subject' })
    expect(await nameOf(wag({ sub: 'wimse://acme.agents.test/agent/7f3d9a2e' }))).toBe('agents')
  })

  it('must give each token an id, and none may be old', async () => {
    expect(await refused(wag({ jti: undefined }))).toMatchObject({ reason: 'malformed', entries: ['agents'] })
    expect(await refused(wag({ iat: Math.floor(now / 1_000) - 601 }))).toMatchObject({ reason: 'too_old' })
  })
})

describe('the use of a token', () => {
  const hash = (text: string) => `identity:${createHash('sha256').update(text).digest('base64url')}`
  const useOf = async (text: string) => (await identities.prove(text)).use

  it('is told by issuer and jti, and kept for as long as the token would be taken', async () => {
    const use = await useOf(token())
    const issued = Math.floor(now / 1_000) * 1_000
    expect(use).toEqual({ id: hash(`${ISSUER}\nj1`), rememberUntil: issued + 300_000 + 60_000 })
    now = use?.rememberUntil ?? 0
    const kept = token({ ...times(NOW) })
    expect(await refused(kept)).toMatchObject({ reason: 'expired' })
  })

  it('is kept no longer than its age allows', async () => {
    const text = token({ ...times(now, 86_400) })
    const use = await useOf(text)
    now = (use?.rememberUntil ?? 0) - 1
    expect(await nameOf(text)).toBe('ci')
    now += 1
    expect(await refused(text)).toMatchObject({ reason: 'too_old' })
  })

  it('is the same for the same jti in another token, and another for another issuer', async () => {
    const twin = entry('twin', { issuer: { kind: 'issuer', issuer: 'https://twin.test' } })
    trust({ identities: [entry('ci'), twin] })
    const ids = [token(), token({ sub: 'other' }), token({ iss: 'https://twin.test' })].map(async (text) =>
      useOf(text).then((use) => use?.id),
    )
    const [one, same, other] = await Promise.all(ids)
    expect(same).toBe(one)
    expect(other).not.toBe(one)
  })

  it.each<[string, unknown]>([
    ['no jti', undefined],
    ['an empty jti', ''],
    ['a jti that is no text', 7],
  ])('is told by what is signed, not by the signature: %s', async (_, jti) => {
    const text = token({ jti })
    const signedPart = text.slice(0, text.lastIndexOf('.'))
    expect(await useOf(text)).toMatchObject({ id: hash(signedPart) })
    // Each ECDSA signature is another one.
    const again = `${signedPart}.${signer.signBytes(signedPart)}`
    expect(again).not.toBe(text)
    expect(await useOf(again)).toMatchObject({ id: hash(signedPart) })
  })

  it('is not counted where the entry does not want it', async () => {
    trust({ identities: [entry('ci', { once: false })] })
    expect(await useOf(token())).toBeUndefined()
  })
})

describe('a service account of Kubernetes', () => {
  const own = newSigner('RS256')
  beforeEach(() => trust({ identities: [presetIdentity('kubernetes', own)] }))
  const claimsOf = presetToken('kubernetes').claims['kubernetes.io'] as Record<string, unknown>

  it('is refused with a token that does not end', async () => {
    const text = signPreset('kubernetes', own, { now, claims: { exp: undefined } })
    expect(await refused(text)).toEqual({ reason: 'legacy', entries: ['kubernetes'] })
  })

  it('is refused with a token that is bound to no pod', async () => {
    const { pod: _, ...rest } = claimsOf
    const text = signPreset('kubernetes', own, { now, claims: { 'kubernetes.io': rest } })
    expect(await refused(text)).toEqual({ reason: 'legacy', entries: ['kubernetes'] })
  })

  it('is refused with the claims of a secret, which are flat', async () => {
    const flat = {
      'kubernetes.io': undefined,
      'kubernetes.io/serviceaccount/namespace': 'my-namespace',
      'kubernetes.io/serviceaccount/service-account.uid': '14ee3fa4-a7e2-420f-9f9a-dbc4507c3798',
      exp: undefined,
    }
    expect(await refused(signPreset('kubernetes', own, { now, claims: flat }))).toMatchObject({
      reason: 'legacy',
    })
  })
})

describe('another configuration', () => {
  it('counts for the next token', async () => {
    expect(await nameOf(token())).toBe('ci')
    trust({ identities: [entry('next', { subject: pattern('j.b') })] })
    expect(await nameOf(token())).toBe('next')
    trust({})
    expect(await refused(token())).toMatchObject({ reason: 'unknown_issuer' })
    expect(identities.trusted()).toEqual({ identities: [], platforms: [] })
  })
})
