import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Identity, IdentityRefused } from '../../src/domain/identity/identity.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { createIdentities } from '../../src/identity/identities.ts'
import { makeCertificates } from '../support/certificates.ts'
import { newSigner, presetIdentity, signPreset } from '../support/identity-tokens.ts'
import { AUDIENCE, presetToken } from '../support/preset-tokens.ts'

/** https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/ */
type Status = Readonly<Record<string, unknown>>

const signer = newSigner('RS256')
const SUBJECT = String(presetToken('kubernetes').claims['sub'])
const KNOWN: Status = {
  authenticated: true,
  audiences: [AUDIENCE],
  user: {
    username: SUBJECT,
    uid: '14ee3fa4-a7e2-420f-9f9a-dbc4507c3798',
    groups: ['system:serviceaccounts'],
  },
}

let directory: string
let ca: string
let url: string
let tokenFile: string
/** What the API says, or the HTTP status with which it says nothing. */
let status: Status | number | undefined
let asked: { path: string; authorization: string | undefined; body: unknown }[]

let api: ReturnType<typeof createServer>

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-review-'))
  tokenFile = join(directory, 'token')
  const { server: tls } = makeCertificates(directory)
  ca = tls.ca
  api = createServer(tls, async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
    const text = Buffer.concat(parts).toString()
    const { url: path = '', headers } = request
    asked.push({
      path,
      authorization: headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
    })
    response.setHeader('content-type', 'application/json')
    if (path === '/openid/v1/jwks') return void response.end(JSON.stringify({ keys: [signer.jwk] }))
    if (typeof status === 'number') return void response.writeHead(status).end('{}')
    const review = { kind: 'TokenReview', apiVersion: 'authentication.k8s.io/v1', status }
    response.writeHead(201).end(JSON.stringify(review))
  }).listen(0, '127.0.0.1')
  await once(api, 'listening')
  url = `https://127.0.0.1:${(api.address() as AddressInfo).port}`
})

beforeEach(async () => {
  asked = []
  status = KNOWN
  await writeFile(tokenFile, 'the token of our own account\n')
})

afterAll(async () => {
  api.closeAllConnections()
  api.close()
  await rm(directory, { recursive: true, force: true })
})

const { addresses: lookup } = createResolver()

function trusting(more: Partial<Identity> = {}) {
  const identities = createIdentities({
    lookup,
    timeoutMs: 5_000,
    log: { warn: () => undefined },
    now: Date.now,
  })
  const keys = { jwks: undefined, jwksUri: undefined, ca, local: true }
  const entry = presetIdentity('kubernetes', signer, { keys, tokenReview: { url, tokenFile }, ...more })
  identities.setTrusted({ identities: [entry], platforms: [] })
  return identities
}

async function outcome(token: string, identities = trusting()) {
  try {
    await identities.prove(token)
    return 'proven'
  } catch (error) {
    if (!(error instanceof IdentityRefused)) throw error
    return [error.reason, error.entries, error.detail]
  }
}

const pod = (claims = {}) => signPreset('kubernetes', signer, { now: Date.now(), claims })

it('asks the API for its keys and then about the token, each with the token of our own account', async () => {
  const token = pod()
  expect(await outcome(token)).toBe('proven')
  const authorization = 'Bearer the token of our own account'
  expect(asked).toEqual([
    { path: '/openid/v1/jwks', authorization, body: undefined },
    {
      path: '/apis/authentication.k8s.io/v1/tokenreviews',
      authorization,
      body: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: [AUDIENCE] },
      },
    },
  ])
})

it('reads the token of our own account each time, because kubelet renews it', async () => {
  const identities = trusting()
  await outcome(pod(), identities)
  await writeFile(tokenFile, 'the next')
  await outcome(pod(), identities)
  expect(asked.map(({ authorization }) => authorization)).toEqual([
    'Bearer the token of our own account',
    'Bearer the token of our own account',
    'Bearer the next',
  ])
})

it.each<[string, Status | number | undefined, string, string | undefined]>([
  ['knows the pod no more', { authenticated: false, error: 'pod is gone' }, 'reviewed', undefined],
  ['says it as text', { ...KNOWN, authenticated: 'true' }, 'reviewed', undefined],
  ['says nothing of the token', {}, 'reviewed', undefined],
  ['does not compare audiences', { ...KNOWN, audiences: undefined }, 'reviewed', 'audience'],
  ['compared another audience', { ...KNOWN, audiences: ['https://other.test'] }, 'reviewed', 'audience'],
  ['names another account', { ...KNOWN, user: { username: 'system:admin' } }, 'reviewed', 'account'],
  ['names nobody', { ...KNOWN, user: null }, 'reviewed', 'account'],
  ['does not answer', undefined, 'keys_unavailable', 'no status'],
  ['does not let us ask', 403, 'keys_unavailable', 'answered 403'],
  ['fails', 500, 'keys_unavailable', 'answered 500'],
])('refuses a token of which the API %s', async (_, says, reason, detail) => {
  status = says
  const why = detail === undefined ? undefined : expect.stringContaining(detail)
  expect(await outcome(pod())).toEqual([reason, ['kubernetes'], why])
})

it('asks nothing about a token that is refused anyway', async () => {
  const identities = trusting({ keys: { jwks: { keys: [signer.jwk] }, jwksUri: undefined, ca, local: true } })
  const forged = newSigner('RS256', signer.kid)
  expect(await outcome(signPreset('kubernetes', forged, { now: Date.now() }), identities)).toEqual([
    'signature',
    ['kubernetes'],
    undefined,
  ])
  expect(await outcome(pod({ aud: 'https://other.test' }), identities)).toEqual([
    'audience',
    ['kubernetes'],
    'kubernetes: audience',
  ])
  expect(await outcome(pod({ exp: undefined }), identities)).toEqual(['legacy', ['kubernetes'], undefined])
  expect(asked).toEqual([])
})

it('says so if the token of our own account cannot be read', async () => {
  await rm(tokenFile)
  const identities = trusting({ keys: { jwks: { keys: [signer.jwk] }, jwksUri: undefined, ca, local: true } })
  expect(await outcome(pod(), identities)).toEqual([
    'keys_unavailable',
    ['kubernetes'],
    'TokenReview: the token_file of token_review cannot be read',
  ])
})
