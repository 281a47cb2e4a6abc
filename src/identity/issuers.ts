import type { IssuerRule, KeySource, TokenReview } from '../domain/identity/identity.ts'
import { IdentityRefused } from '../domain/identity/identity.ts'
import { MINUTE_MS } from '../domain/limits.ts'
import { createFetch, type Fetch, fetchKeys, type IdentityWays } from './documents.ts'
import { fetchingIssuer, fixedIssuer, type Issuer } from './issuer.ts'
import { readKeySet } from './key-set.ts'

/** Whose keys they are, and where they are. Entries with the same source share its keys; no others do. */
export interface Source {
  readonly rule: IssuerRule
  readonly keys: KeySource
  readonly tokenReview: TokenReview | undefined
}

/** The issuers of one source: one, or those that a pattern takes. */
export interface Issuers {
  /** Throws `IdentityRefused`: `unknown_issuer` for what cannot be the address of one, `keys_unavailable` for too many new ones. */
  of(issuer: string): Issuer
  /** Asks under the rules of the source. */
  readonly fetch: Fetch
}

/** Issuers under one pattern that are kept, and new ones among them in a minute: anybody can make names up. */
export const MAX_ISSUERS = 100
export const NEW_ISSUERS_PER_MINUTE = 30
/** How long an issuer that failed is left alone; under a pattern it may be one that somebody made up. */
const PAUSE_MS = 5_000
const PATTERN_PAUSE_MS = MINUTE_MS

export function idOfSource({ rule, keys, tokenReview }: Source): string {
  const whose = rule.kind === 'pattern' ? [rule.kind, rule.rule.text] : Object.values(rule)
  return JSON.stringify([whose, keys.jwks, keys.jwksUri, keys.ca, keys.local, tokenReview])
}

/** Asks nobody yet. */
export function createIssuers(source: Source, ways: IdentityWays): Issuers {
  const { rule, keys: place } = source
  const fetch = createFetch(place, ways)
  if (place.jwks !== undefined) {
    const fixed = fixedIssuer(readKeySet(place.jwks) ?? [])
    return { of: () => fixed, fetch }
  }
  // Keys at one address are the same for all issuers of the pattern.
  const isDiscovered =
    rule.kind === 'pattern' && place.jwksUri === undefined && source.tokenReview === undefined
  const open = (issuer: string) =>
    fetchingIssuer({
      fetchKeys: () => fetchKeys(issuer, { ...place, tokenReview: source.tokenReview }, fetch),
      onFailure: (detail) => ways.log.warn({ issuer, detail }, 'the keys of an issuer cannot be had'),
      pauseMs: isDiscovered ? PATTERN_PAUSE_MS : PAUSE_MS,
      now: ways.now,
    })
  if (isDiscovered) return { of: createMany(open, source, ways), fetch }
  const one = open(nameOf(rule))
  return { of: () => one, fetch }
}

function nameOf(rule: IssuerRule): string {
  if (rule.kind === 'issuer') return rule.issuer
  return rule.kind === 'pattern' ? rule.rule.text : rule.domain
}

/** The issuer that was asked for last is at the end. */
function createMany(
  open: (issuer: string) => Issuer,
  { keys: { local } }: Source,
  { now }: IdentityWays,
): Issuers['of'] {
  const known = new Map<string, Issuer>()
  let minute = { begunAt: Number.NEGATIVE_INFINITY, count: 0 }
  const countNew = () => {
    if (now() >= minute.begunAt + MINUTE_MS) minute = { begunAt: now(), count: 0 }
    minute.count += 1
    if (minute.count > NEW_ISSUERS_PER_MINUTE)
      throw new IdentityRefused('keys_unavailable', [], 'too many new issuers match the pattern')
  }
  const makeRoom = () => {
    if (known.size < MAX_ISSUERS) return
    const [oldest] = known.keys()
    const keyless = [...known].find(([, one]) => !one.hasKeys())?.[0]
    known.delete(keyless ?? oldest ?? '')
  }
  return (issuer) => {
    if (!mayFetch(issuer, local)) throw new IdentityRefused('unknown_issuer')
    let found = known.get(issuer)
    if (found === undefined) {
      countNew()
      makeRoom()
      found = open(issuer)
    }
    known.delete(issuer)
    known.set(issuer, found)
    return found
  }
}

/**
 * Under a pattern, the token says which address is fetched: only one that a URL parser leaves as it is (no `%2e%2e`, no capital
 * letters in the host), so that everybody reads it alike.
 */
function mayFetch(issuer: string, local: boolean): boolean {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  if (url === undefined || (url.href !== issuer && url.href !== `${issuer}/`)) return false
  return url.protocol === 'https:' || (local && url.protocol === 'http:')
}
