import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { identity, newSigner, pattern, times } from '../../test/support/identity-tokens.ts'
import { AUDIENCE } from '../../test/support/preset-tokens.ts'
import { IdentityRefused } from '../domain/identity/identity.ts'
import { MINUTE_MS } from '../domain/limits.ts'
import { createIdentities } from './identities.ts'
import { MAX_ISSUERS, NEW_ISSUERS_PER_MINUTE } from './issuers.ts'

const signer = newSigner('ES256')
/** Each path is an issuer, as for the enterprises of GitHub; those that begin with `no` are not there. */
const seen: string[] = []
const server = createServer((request, response) => {
  const [, tenant = ''] = /^\/([^/]+)\//.exec(request.url ?? '') ?? []
  seen.push(tenant)
  if (tenant.startsWith('no')) return void response.writeHead(404).end()
  const body = request.url?.endsWith('/jwks')
    ? { keys: [signer.jwk] }
    : { issuer: `${base}/${tenant}`, jwks_uri: `${base}/${tenant}/jwks` }
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
})
let base: string
let now: number
let identities: ReturnType<typeof createIdentities>

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

beforeEach(() => {
  now = Date.now()
  seen.length = 0
  identities = createIdentities({
    lookup: () => Promise.reject(new Error('nothing is looked up here')),
    timeoutMs: 5_000,
    log: { warn: () => undefined },
    now: () => now,
  })
  trust(true)
})

function trust(local: boolean, jwksUri?: string): void {
  const rule = pattern(`https?://127\\.0\\.0\\.1:\\d+/[^/]+`)
  const keys = { jwks: undefined, jwksUri, ca: undefined, local }
  identities.setTrusted({
    identities: [identity('ci', { issuer: { kind: 'pattern', rule }, keys })],
    platforms: [],
  })
}

async function outcome(iss: string): Promise<string> {
  try {
    await identities.prove(signer.sign({ iss, sub: 'job', aud: AUDIENCE, ...times(now) }))
    return 'proven'
  } catch (error) {
    if (error instanceof IdentityRefused) return error.reason
    throw error
  }
}

const tenants = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${base}/${name}${at}`)

describe('issuers under a pattern', () => {
  it('have keys of their own', async () => {
    expect(await outcome(`${base}/acme`)).toBe('proven')
    expect(await outcome(`${base}/other`)).toBe('proven')
    expect(seen).toEqual(['acme', 'acme', 'other', 'other'])
    expect(await outcome(`${base}/acme`)).toBe('proven')
    expect(seen).toHaveLength(4)
  })

  it.each([
    ['another segment', (url: string) => `${url}/acme/sub`],
    ['a segment of dots', (url: string) => `${url}/..`],
    ['a segment of dots that are escaped', (url: string) => `${url}/%2e%2e`],
    ['a slash that is escaped', (url: string) => `${url}/acme%2fsub?`],
    ['a query', (url: string) => `${url}/acme?x`],
    ['a fragment', (url: string) => `${url}/acme#x`],
    ['a user', (url: string) => url.replace('http://', 'http://acme@')],
    ['a space', (url: string) => `${url}/ac me`],
    ['a backslash', (url: string) => `${url}/ac\\me`],
    ['the address written otherwise', (url: string) => `${url.replace('127.0.0.1', '127.1')}/acme`],
  ])('are never asked for with %s', async (_, change) => {
    expect(await outcome(change(base))).toBe('unknown_issuer')
    expect(seen).toEqual([])
  })

  it('are not asked for over plain HTTP unless they are local', async () => {
    trust(false)
    expect(await outcome(`${base}/acme`)).toBe('unknown_issuer')
    expect(seen).toEqual([])
  })

  it('share the keys at the address that the entry names', async () => {
    trust(true, `${base}/shared/jwks`)
    expect(await outcome(`${base}/acme`)).toBe('proven')
    expect(await outcome(`${base}/other`)).toBe('proven')
    expect(seen).toEqual(['shared'])
  })

  it('can be made up: then so many are asked for in a minute, and known ones stay', async () => {
    expect(await outcome(`${base}/acme`)).toBe('proven')
    const made = tenants('no', 2 * NEW_ISSUERS_PER_MINUTE)
    for (const one of made) expect(await outcome(one)).toBe('keys_unavailable')
    expect(new Set(seen).size).toBe(NEW_ISSUERS_PER_MINUTE)
    seen.length = 0
    expect(await outcome(`${base}/acme`)).toBe('proven')
    expect(await outcome(`${base}/other`)).toBe('keys_unavailable')
    now += MINUTE_MS
    expect(await outcome(`${base}/other`)).toBe('proven')
    expect(seen).toEqual(['other', 'other'])
  })

  it('that were made up are asked again once a minute at most', async () => {
    await outcome(`${base}/no`)
    now += MINUTE_MS - 1
    await outcome(`${base}/no`)
    expect(seen).toEqual(['no'])
    now += 1
    await outcome(`${base}/no`)
    expect(seen).toEqual(['no', 'no'])
  })

  it('are kept in a number that is bounded: those without keys go first, then the one that was asked for longest ago', async () => {
    const asked = async (all: readonly string[]) => {
      for (const one of all) {
        now += MINUTE_MS / 10
        await outcome(one)
      }
    }
    await asked(tenants('acme', 2))
    await asked(tenants('no', MAX_ISSUERS))
    seen.length = 0
    await asked(tenants('acme', 2))
    expect(seen).toEqual([])
    await asked(tenants('other', MAX_ISSUERS - 1))
    seen.length = 0
    await asked(tenants('acme', 2).reverse())
    expect(seen).toEqual(['acme0', 'acme0'])
  })
})
