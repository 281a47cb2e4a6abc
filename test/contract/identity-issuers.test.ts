import { mkdtemp, rm } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Identity, IdentityRefused, type KeySource } from '../../src/domain/identity/identity.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { makeCertificates } from '../support/certificates.ts'
import { equal, identity, newSigner, times } from '../support/identity-tokens.ts'
import { DISCOVERY, JWKS, type LookAlikeIssuer, startLookAlikeIssuer } from '../support/look-alike-issuer.ts'
import { AUDIENCE } from '../support/preset-tokens.ts'

const HOUR_MS = 3_600_000
/** Longer than an issuer that failed is left alone. */
const PAUSE_MS = 6_000
const lookup = createResolver().addresses

let directory: string
let issuer: LookAlikeIssuer
let offset = 0
const logged: string[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-issuers-'))
  issuer = await startLookAlikeIssuer({ tls: makeCertificates(directory).server })
})

afterEach(() => {
  issuer.answers.clear()
  issuer.seen.length = 0
  offset = 0
})

afterAll(async () => {
  await issuer.close()
  await rm(directory, { recursive: true, force: true })
})

/** Each begins without any keys. `timeoutMs` is that of one request. */
function trusting(more: Partial<Identity> = {}, timeoutMs = 5_000) {
  const identities = createIdentities({
    lookup,
    timeoutMs,
    log: { warn: (fields, message) => void logged.push(JSON.stringify({ ...fields, message })) },
    now: () => Date.now() + offset,
  })
  const own = { issuer: { kind: 'issuer', issuer: issuer.issuer } as const, keys: issuer.keys }
  identities.setTrusted({ identities: [identity('ci', { ...own, ...more })], platforms: [] })
  return identities
}

const keys = (more: Partial<KeySource>): Partial<Identity> => ({ keys: { ...issuer.keys, ...more } })

async function outcome(identities: ReturnType<typeof trusting>, token: string) {
  try {
    await identities.prove(token)
    return 'proven'
  } catch (error) {
    if (!(error instanceof IdentityRefused)) throw error
    return [error.reason, error.detail ?? '']
  }
}

const forged = (claims: Record<string, unknown> = {}) => {
  const signer = newSigner('RS256')
  return signer.sign({ iss: issuer.issuer, sub: 'workload', aud: AUDIENCE, ...times(Date.now()), ...claims })
}

describe('an issuer that speaks OpenID Connect over TLS', () => {
  it('proves a workload by its discovery document and keys, each fetched once', async () => {
    const identities = trusting({ subject: equal('workload'), claims: [{ ...equal('7'), claim: 'run' }] })
    const tokens = await Promise.all([1, 2, 3].map(() => issuer.token({ claims: { run: 7 } })))
    issuer.seen.length = 0
    const [proven] = await Promise.all(tokens.map((token) => identities.prove(token)))
    expect(proven).toMatchObject({
      issuer: issuer.issuer,
      subject: 'workload',
      claims: { run: 7, aud: AUDIENCE },
    })
    expect(issuer.seen).toEqual([DISCOVERY, JWKS])
  })

  it('proves nothing for another audience', async () => {
    const token = await issuer.token({ audience: 'https://other.test' })
    expect(await outcome(trusting(), token)).toEqual(['audience', 'ci: audience'])
  })

  it('may rotate its keys: the new one counts at once, the old one no longer', async () => {
    const identities = trusting()
    const before = await issuer.token()
    expect(await outcome(identities, before)).toBe('proven')
    issuer.rotateKeys()
    const after = await issuer.token()
    expect(await outcome(identities, after)).toBe('proven')
    expect(await outcome(identities, before)).toEqual(['unknown_key', ''])
  })

  it('is not asked for what strangers send', async () => {
    const identities = trusting()
    const others = [
      forged({ iss: 'https://other.test' }),
      forged({ iss: `${issuer.issuer}/` }),
      'no.token.here',
    ]
    for (const token of others) expect(await outcome(identities, token)).not.toBe('proven')
    expect(issuer.seen).toEqual([])
    expect(await outcome(identities, forged())).toEqual(['unknown_key', ''])
    issuer.seen.length = 0
    for (let count = 0; count < 20; count += 1) await outcome(identities, forged())
    expect(issuer.seen).toEqual([])
  })

  it('needs a certificate that the entry trusts', async () => {
    const token = await issuer.token()
    expect(await outcome(trusting(keys({ ca: undefined })), token)).toEqual([
      'keys_unavailable',
      expect.stringMatching(/certificate/i),
    ])
  })

  it('is on another machine unless the entry says local', async () => {
    const token = await issuer.token()
    expect(await outcome(trusting(keys({ local: false })), token)).toEqual([
      'keys_unavailable',
      expect.stringContaining('loopback'),
    ])
    expect(issuer.seen).toEqual([])
  })

  it('may end in a slash, which its discovery document has and the address of that has not', async () => {
    const slashed = `${issuer.issuer}/tenant/`
    issuer.answers.set(`/tenant${DISCOVERY}`, metadata({ issuer: slashed }))
    const token = issuer.signer().sign({ iss: slashed, sub: 'job', aud: AUDIENCE, ...times(Date.now()) })
    expect(await outcome(trusting({ issuer: { kind: 'issuer', issuer: slashed } }), token)).toBe('proven')
    expect(issuer.seen).toEqual([`/tenant${DISCOVERY}`, JWKS])
  })

  it('may have its keys at an address of the entry, without discovery', async () => {
    const token = await issuer.token()
    expect(await outcome(trusting(keys({ jwksUri: `${issuer.issuer}${JWKS}` })), token)).toBe('proven')
    expect(issuer.seen).toEqual([JWKS])
  })
})

const json =
  (value: unknown): RequestListener =>
  (_, response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
const text =
  (body: string, status = 200): RequestListener =>
  (_, response) =>
    void response.writeHead(status).end(body)

/** The keys that sign, in a document of so many bytes. */
function sized(bytes: number): RequestListener {
  const document = { keys: [issuer.signer().jwk], more: '' }
  const more = 'a'.repeat(bytes - JSON.stringify(document).length)
  return json({ ...document, more })
}

describe('an issuer that answers something else', () => {
  const cases: [string, string, () => RequestListener, RegExp][] = [
    ['a redirect of its metadata', DISCOVERY, () => redirect('/elsewhere'), /redirect/],
    ['a redirect of its keys', JWKS, () => redirect('http://169.254.169.254/latest'), /redirect/],
    ['keys of more than 100 KiB', JWKS, () => sized(102_401), /too long/],
    ['keys without an end', JWKS, () => endless, /too long/],
    [
      'metadata of another issuer',
      DISCOVERY,
      () => metadata({ issuer: 'https://other.test' }),
      /another issuer/,
    ],
    [
      'metadata of its twin with a slash',
      DISCOVERY,
      () => metadata({ issuer: `${issuer.issuer}/` }),
      /another issuer/,
    ],
    ['metadata without issuer', DISCOVERY, () => metadata({ issuer: undefined }), /another issuer/],
    ['metadata without keys', DISCOVERY, () => metadata({ jwks_uri: undefined }), /no jwks_uri/],
    ['an address that is no text', DISCOVERY, () => metadata({ jwks_uri: ['x'] }), /no jwks_uri/],
    ['an address of files', DISCOVERY, () => metadata({ jwks_uri: 'file:///etc/passwd' }), /not an http/],
    [
      'an address of data',
      DISCOVERY,
      () => metadata({ jwks_uri: 'data:application/json,{}' }),
      /not an http/,
    ],
    ['an address with a login', DISCOVERY, () => metadata({ jwks_uri: 'https://a:b@localhost/' }), /login/],
    [
      'metadata of the cloud as keys',
      DISCOVERY,
      () => metadata({ jwks_uri: 'http://169.254.169.254/' }),
      /never connects/,
    ],
    ['metadata that is no JSON', DISCOVERY, () => text('<html>'), /another issuer/],
    ['metadata that is a list', DISCOVERY, () => json([]), /another issuer/],
    ['keys that are no JSON', JWKS, () => text('<html>'), /no JWK set/],
    ['keys that are no set', JWKS, () => json({ keys: {} }), /no JWK set/],
    ['not found', DISCOVERY, () => text('{}', 404), /answered 404/],
    ['a failure with keys in it', JWKS, () => text('{"keys":[]}', 500), /answered 500/],
    ['no content', JWKS, () => text('', 204), /answered 204/],
    ['compressed keys', JWKS, () => compressed, /compressed/],
    ['a connection that breaks', JWKS, () => broken, /./],
  ]
  it.each(cases)('has no keys: %s', async (_, path, answer, detail) => {
    const token = await issuer.token()
    issuer.answers.set(path, answer())
    const identities = trusting()
    expect(await outcome(identities, token)).toEqual(['keys_unavailable', expect.stringMatching(detail)])
    expect(await outcome(identities, token)).toEqual(['keys_unavailable', expect.stringMatching(detail)])
    issuer.answers.clear()
    offset = PAUSE_MS
    expect(await outcome(identities, token)).toBe('proven')
  })

  it('may send 100 KiB', async () => {
    const token = await issuer.token()
    issuer.answers.set(JWKS, sized(102_400))
    expect(await outcome(trusting(), token)).toBe('proven')
  })

  it('has keys that cannot sign: then no token is signed', async () => {
    const token = await issuer.token()
    issuer.answers.set(JWKS, json({ keys: [{ ...issuer.signer().jwk, use: 'enc' }] }))
    expect(await outcome(trusting(), token)).toEqual(['unknown_key', ''])
  })

  it('names keys over plain HTTP: then they are not fetched unless it is local', async () => {
    const token = await issuer.token()
    const plain = keys({ local: false, jwksUri: 'http://keys.example/jwks' })
    expect(await outcome(trusting(plain), token)).toEqual([
      'keys_unavailable',
      'an address of the issuer is not https',
    ])
  })

  it('does not answer in time: then a token has waited as long as one request may take', async () => {
    const token = await issuer.token()
    // Enough for an issuer that answers on a slow machine, too.
    const identities = trusting({}, 2_000)
    issuer.answers.set(JWKS, () => undefined)
    const begun = performance.now()
    expect(await outcome(identities, token)).toEqual(['keys_unavailable', expect.stringMatching(/time/)])
    // It would never answer.
    expect(performance.now() - begun).toBeLessThan(20_000)
    issuer.answers.clear()
    offset = PAUSE_MS
    expect(await outcome(identities, token)).toBe('proven')
  })
})

describe('an issuer that is away', () => {
  it('goes on with its known keys for an hour beyond their hour, whatever is wrong with it', async () => {
    const away = await startLookAlikeIssuer()
    const identities = trusting({ issuer: { kind: 'issuer', issuer: away.issuer }, keys: away.keys })
    const now = Date.now()
    const aged = (ms: number) =>
      away.signer().sign({ iss: away.issuer, sub: 'workload', aud: AUDIENCE, ...times(now + ms) })
    expect(await outcome(identities, await away.token())).toBe('proven')
    await away.close()
    for (const ms of [HOUR_MS + 1_000, HOUR_MS + PAUSE_MS + 2_000, 2 * HOUR_MS - 60_000]) {
      offset = ms
      expect(await outcome(identities, aged(ms))).toBe('proven')
    }
    offset = 2 * HOUR_MS + 60_000
    expect(await outcome(identities, aged(offset))).toEqual(['keys_unavailable', expect.stringMatching(/./)])
  })

  it('is named in the log, with what went wrong and nothing that it sent', async () => {
    logged.length = 0
    issuer.answers.set(DISCOVERY, text('a secret of the issuer', 500))
    await outcome(trusting(), await issuer.token())
    expect(logged).toEqual([expect.stringContaining(issuer.issuer)])
    expect(logged.join()).toContain('answered 500')
    expect(logged.join()).not.toContain('secret')
  })
})

describe('a reload', () => {
  it('keeps the keys of issuers that stay, and of no other', async () => {
    const identities = trusting()
    const token = await issuer.token()
    await outcome(identities, token)
    issuer.seen.length = 0
    const same = identity('renamed', { issuer: { kind: 'issuer', issuer: issuer.issuer }, keys: issuer.keys })
    identities.setTrusted({ identities: [same], platforms: [] })
    expect(await outcome(identities, token)).toBe('proven')
    expect(issuer.seen).toEqual([])
    identities.setTrusted({ identities: [], platforms: [] })
    identities.setTrusted({ identities: [same], platforms: [] })
    expect(await outcome(identities, token)).toBe('proven')
    expect(issuer.seen).toEqual([DISCOVERY, JWKS])
  })
})

function redirect(to: string): RequestListener {
  return (_, response) => void response.writeHead(302, { location: to }).end()
}

function metadata(changes: Record<string, unknown>): RequestListener {
  return json({ issuer: issuer.issuer, jwks_uri: `${issuer.issuer}${JWKS}`, ...changes })
}

const endless: RequestListener = (_, response) => {
  const more = () => {
    while (response.write('a'.repeat(65_536)));
  }
  response.on('drain', more)
  more()
}

const compressed: RequestListener = (_, response) =>
  void response.setHeader('content-encoding', 'gzip').end(Buffer.from([0x1f, 0x8b]))

const broken: RequestListener = (request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{')
  request.socket.destroy()
}
