import { createHash } from 'node:crypto'
import {
  type AnyEntry,
  IdentityRefused,
  nameOfEntry,
  type ProvenWorkload,
  type Refusal,
} from '../domain/identity/identity.ts'
import { audienceMatches, failedCondition, isSubject, issuerMatches } from '../domain/identity/match.ts'
import { readTimes, requireAge, requireCurrent, type Times } from '../domain/identity/times.ts'
import { FOREIGN_AGE_MS } from '../domain/limits.ts'
import { type ForeignJws, readForeignJws } from '../keys/foreign-jws.ts'
import type { Issuers } from './issuers.ts'
import { requireReviewed } from './token-review.ts'

/** An entry with the keys of its source. */
export interface Held {
  readonly entry: AnyEntry
  readonly issuers: Issuers
}

/** A token that says who it is for; nothing of it is verified. */
interface Said extends ForeignJws {
  readonly issuer: string | undefined
  readonly subject: string
}

const MAX_ISSUER_LENGTH = 255
const MAX_SUBJECT_LENGTH = 1_024
const SUBJECT = /^[^\p{Cc}\p{Cs}]+$/u

/**
 * Finds the one entry whose workload signed this token: the issuer first, then its keys, then times and conditions, so that
 * strangers cost neither a fetch nor a signature check. `now` is epoch ms. An entry that observes is found when no other
 * matches. Throws `IdentityRefused`.
 */
export async function prove(token: string, all: readonly Held[], now: number): Promise<ProvenWorkload> {
  const said = read(token)
  const candidates = all.filter(({ entry }) => isFrom(entry, said))
  if (candidates.length === 0) throw new IdentityRefused('unknown_issuer')
  const signed = await requireSignature(token, said, candidates)
  const times = requireTimes(said, signed, now)
  const held = requireOneMatch(said, signed)
  const names = [nameOf(held)]
  try {
    return await complete(token, said, held, { times, now })
  } catch (error) {
    throw error instanceof IdentityRefused ? new IdentityRefused(error.reason, names, error.detail) : error
  }
}

function read(token: string): Said {
  const jws = readForeignJws(token)
  const { iss: issuer, sub: subject } = jws.claims
  if (issuer !== undefined && (typeof issuer !== 'string' || issuer.length > MAX_ISSUER_LENGTH))
    throw new IdentityRefused('malformed', [], 'iss is not text of at most 255 characters')
  if (typeof subject !== 'string' || subject.length > MAX_SUBJECT_LENGTH || !SUBJECT.test(subject))
    throw new IdentityRefused('malformed', [], 'sub is not printable text of at most 1,024 characters')
  return { ...jws, issuer, subject }
}

function isFrom(entry: Held['entry'], said: Said): boolean {
  if (entry.kind === 'platform') return said.issuer === entry.platform.issuer
  return issuerMatches(entry.identity.issuer, said)
}

/** Whose keys they are: a trust domain signs without an issuer of its own. */
function issuerOf({ entry }: Held, said: Said): string {
  if (entry.kind === 'identity' && entry.identity.issuer.kind === 'trust_domain')
    return `spiffe://${entry.identity.issuer.domain}`
  return said.issuer ?? ''
}

/**
 * The candidates by whose keys the token is signed, each held against the keys of its own source. Where the keys of one cannot be had that would match,
 * nobody can say that only one matches.
 */
async function requireSignature(token: string, said: Said, candidates: readonly Held[]): Promise<Held[]> {
  const refusals = new Map<Issuers, IdentityRefused | undefined>()
  const verify = async (held: Held) =>
    refusalOf(() => held.issuers.of(issuerOf(held, said)).requireSignature(token, said))
  const oneOfEach = [...new Map(candidates.map((held) => [held.issuers, held])).values()]
  await Promise.all(oneOfEach.map(async (held) => void refusals.set(held.issuers, await verify(held))))
  const refusalFor = ({ issuers }: Held) => refusals.get(issuers)
  const away = candidates.find(
    (held) => refusalFor(held)?.reason === 'keys_unavailable' && failureIn(held, said) === undefined,
  )
  const signed = candidates.filter((held) => refusalFor(held) === undefined)
  const refused = away ?? (signed.length === 0 ? candidates[0] : undefined)
  const refusal = refused && refusalFor(refused)
  if (refusal !== undefined) throw new IdentityRefused(refusal.reason, candidates.map(nameOf), refusal.detail)
  return signed
}

async function refusalOf(run: () => Promise<void>): Promise<IdentityRefused | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    if (error instanceof IdentityRefused) return error
    throw error
  }
}

function requireTimes(said: Said, signed: readonly Held[], now: number): Times {
  const names = signed.map(nameOf)
  // Tokens in secrets of Kubernetes before 1.24 never end.
  if (said.claims['exp'] === undefined && signed.some(isOfKubernetes))
    throw new IdentityRefused('legacy', names)
  const times = readTimes(said.claims)
  if (times === undefined)
    throw new IdentityRefused('malformed', names, 'exp, iat or nbf is missing or no date')
  const reason = requireCurrent(times, now)
  if (reason !== undefined) throw new IdentityRefused(reason, names)
  return times
}

/** How far a token came with the entry that it fits best. */
const PROGRESS: readonly Refusal[] = ['audience', 'subject', 'claim']

function requireOneMatch(said: Said, signed: readonly Held[]): Held {
  const results = signed.map((held) => ({ held, failure: failureIn(held, said) }))
  const matching = results.filter(({ failure }) => failure === undefined).map(({ held }) => held)
  const enforced = matching.filter((held) => !isObserving(held))
  if (enforced.length > 1) throw new IdentityRefused('ambiguous', enforced.map(nameOf))
  const found = enforced[0] ?? matching[0]
  if (found !== undefined) return found
  const failures = results.flatMap(({ held, failure }) =>
    failure === undefined ? [] : [{ held, ...failure }],
  )
  const best = failures.reduce((one, other) =>
    PROGRESS.indexOf(other.reason) > PROGRESS.indexOf(one.reason) ? other : one,
  )
  throw new IdentityRefused(best.reason, signed.map(nameOf), `${nameOf(best.held)}: ${best.condition}`)
}

function failureIn({ entry }: Held, said: Said): ReturnType<typeof failedCondition> {
  if (entry.kind === 'identity') return failedCondition(entry.identity, said)
  if (!audienceMatches(entry.platform, said.claims['aud']))
    return { reason: 'audience', condition: 'audience' }
  return isSubject(said.subject) ? undefined : { reason: 'subject', condition: 'subject' }
}

interface Known {
  readonly times: Times
  readonly now: number
}

async function complete(
  token: string,
  said: Said,
  held: Held,
  { times, now }: Known,
): Promise<ProvenWorkload> {
  const { entry } = held
  const rules = rulesOf(entry)
  const usedUntil = requireAge(times, rules, now)
  if (isOfKubernetes(held) && !isOfPod(said)) throw new IdentityRefused('legacy')
  if (entry.kind === 'identity' && entry.identity.tokenReview !== undefined)
    await requireReviewed(
      entry.identity,
      entry.identity.tokenReview,
      { token, subject: said.subject },
      held.issuers.fetch,
    )
  const issuer = issuerOf(held, said)
  const { jti } = said.claims
  if (entry.kind === 'platform' && !isId(jti)) throw new IdentityRefused('malformed', [], 'there is no jti')
  return {
    entry,
    issuer,
    subject: said.subject,
    claims: said.claims,
    expiresAt: times.expiresAt,
    use:
      rules.once && !isObserving(held)
        ? { id: idOfUse(issuer, isId(jti) ? jti : undefined, said.signedPart), rememberUntil: usedUntil }
        : undefined,
  }
}

/** What a platform signs is for one login each (Workload Authorization Grant: `iat`, `exp` and `jti` are required). */
function rulesOf(entry: Held['entry']) {
  if (entry.kind === 'platform') return { maxAgeMs: FOREIGN_AGE_MS, once: true, mayLackIssuedAt: false }
  const { maxAgeMs, once, issuer } = entry.identity
  return { maxAgeMs, once, mayLackIssuedAt: issuer.kind === 'trust_domain' }
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** An issuer without `jti` is told apart by what it signed, not by the signature, which can be written in several ways. */
function idOfUse(issuer: string, jti: string | undefined, signedPart: string): string {
  const text = jti === undefined ? signedPart : `${issuer}\n${jti}`
  return `identity:${createHash('sha256').update(text).digest('base64url')}`
}

const nameOf = ({ entry }: Held) => nameOfEntry(entry)

const isObserving = ({ entry }: Held) => entry.kind === 'identity' && entry.identity.mode === 'observe'

const isOfKubernetes = ({ entry }: Held) =>
  entry.kind === 'identity' && entry.identity.claims.some(({ claim }) => claim.startsWith('kubernetes.io/'))

/** A token that kubelet projects is bound to its pod; one of `kubectl create token` or of a secret is not. */
function isOfPod({ claims }: Said): boolean {
  const own = claims['kubernetes.io']
  return typeof own === 'object' && own !== null && Object.hasOwn(own, 'pod')
}
