import type { Static } from 'typebox'
import { parseBoundedDuration } from '../domain/duration.ts'
import { type InvalidValue, quote } from '../domain/fault.ts'
import type { ClaimRule, Identity, IssuerRule, TextRule } from '../domain/identity/identity.ts'
import { isSubject, isTrustDomain } from '../domain/identity/match.ts'
import { parseTemplate } from '../domain/identity/template.ts'
import { DAY_MS, FOREIGN_AGE_MS, HOUR_MS } from '../domain/limits.ts'
import { isAdminScope, isScope } from '../domain/scope.ts'
import { checkEntries, type Note, noting } from './check-entries.ts'
import type { IdentitySchema } from './identity-schema.ts'
import { addressFault, type CheckedKeys, checkKeys, checkName, issuerFault } from './key-source.ts'
import {
  equalRule,
  type IssuerPattern,
  issuerPatternRule,
  patternRule,
  takesEverySubject,
  takesEveryWorkload,
} from './text-rule.ts'
import { parseTokenTtl } from './values.ts'

export type IdentityEntry = Static<typeof IdentitySchema>

/** An entry that is well-formed. Its authorities are still in a file. */
export interface CheckedIdentity extends Omit<Identity, 'keys' | 'issuer'> {
  readonly keys: CheckedKeys
  readonly issuer: CheckedIssuer
}

type CheckedIssuer =
  | Exclude<IssuerRule, { readonly kind: 'pattern' }>
  | { readonly kind: 'pattern'; readonly rule: IssuerPattern }

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** Azure's tokens are the same for a day. */
const LONGEST_AGE_MS = 7 * DAY_MS

/** Checks all entries and reports every fault with its place. Entries with faults are left out. */
export function checkIdentities(
  entries: readonly IdentityEntry[],
  report: (fault: InvalidValue) => void,
): CheckedIdentity[] {
  const names = new Set<string>()
  const agents = new Map<string, string>()
  return checkEntries(entries, report, (entry, note) => {
    checkName(entry.name, names, NAME, 'identity', note)
    // Names of agents are unique without their case. Claims are compared without it, too: no harm is in that.
    const key = entry.agent.toLowerCase()
    const other = agents.get(key)
    if (other !== undefined) note(['agent'], `is already given by the entry ${quote(other)}`)
    agents.set(key, entry.name)
    return check(entry, note)
  })
}

function check(entry: IdentityEntry, note: Note): CheckedIdentity | undefined {
  const keys = checkKeys(entry, note)
  const issuer = checkIssuer(entry, note)
  const subject = checkSubject(entry, note)
  const claims = Object.entries(entry.claims ?? {}).flatMap(([claim, wanted]) => {
    const rule = checkClaim(claim, wanted, note)
    return rule === undefined ? [] : [rule]
  })
  if (issuer !== undefined && subject !== undefined) requireBound(issuer, subject, claims, note)
  checkScopes(entry.scopes, ['scopes'], note)
  checkReview(entry, keys.local, note)
  const agent = noting(note, ['agent'], () => parseTemplate(entry.agent))
  const times = checkTimes(entry, note)
  if (issuer === undefined || subject === undefined || agent === undefined) return undefined
  const { token_review: review } = entry
  return {
    name: entry.name,
    keys,
    audience: entry.audience,
    issuer,
    subject,
    claims,
    agent,
    concurrent: entry.concurrent ?? 'share',
    scopes: entry.scopes,
    ...times,
    once: entry.once ?? true,
    mode: entry.mode ?? 'enforce',
    tokenReview: review === undefined ? undefined : { url: review.url, tokenFile: review.token_file },
  }
}

/** The one of these fields that the entry has; undefined if a fault was noted. */
function oneOf<K extends keyof IdentityEntry & string>(
  entry: IdentityEntry,
  fields: readonly K[],
  note: Note,
): K | undefined {
  const [first, second] = fields.filter((field) => entry[field] !== undefined)
  if (first === undefined) note([], `requires one of ${fields.join(', ')}`)
  if (first === undefined || second === undefined) return first
  note([second], `${first} is also set; keep one of them`)
  return undefined
}

function checkIssuer(entry: IdentityEntry, note: Note): CheckedIssuer | undefined {
  const field = oneOf(entry, ['issuer', 'issuer_pattern', 'trust_domain'] as const, note)
  const { issuer, issuer_pattern: pattern, trust_domain: domain, local = false } = entry
  if (field === 'issuer' && issuer !== undefined) {
    const fault = issuerFault(issuer, local)
    if (fault !== undefined) note(['issuer'], fault)
    return { kind: 'issuer', issuer }
  }
  if (field === 'issuer_pattern' && pattern !== undefined) {
    const rule = noting(note, ['issuer_pattern'], () => issuerPatternRule(pattern, local))
    return rule === undefined ? undefined : { kind: 'pattern', rule }
  }
  if (field !== 'trust_domain' || domain === undefined) return undefined
  if (!isTrustDomain(domain))
    note(['trust_domain'], `${quote(domain)} is no trust domain such as prod.example.com: without spiffe://`)
  if (entry.jwks === undefined && entry.jwks_uri === undefined)
    note(['trust_domain'], 'requires jwks_uri or jwks: a trust domain has no discovery document')
  return { kind: 'trust_domain', domain }
}

function checkSubject(entry: IdentityEntry, note: Note): TextRule | undefined {
  const field = oneOf(entry, ['subject', 'subject_pattern'] as const, note)
  const { subject, subject_pattern: pattern } = entry
  if (field === 'subject' && subject !== undefined) {
    if (!isSubject(subject))
      note(['subject'], 'contains white space, quotes or brackets, which no subject has')
    else if (subject.includes('*'))
      note(['subject'], 'is compared as it is, so "*" stands for itself; a pattern is subject_pattern')
    return equalRule(subject)
  }
  if (field !== 'subject_pattern' || pattern === undefined) return undefined
  return noting(note, ['subject_pattern'], () => patternRule(pattern))
}

/** Those with a setting of their own, and those that differ in each token. */
const OWN_SETTING: Readonly<Record<string, string>> = {
  iss: 'is compared by issuer',
  aud: 'is compared by audience',
  sub: 'is compared by subject or subject_pattern',
  iat: 'is compared by max_age',
  ...Object.fromEntries(['exp', 'nbf', 'jti'].map((name) => [name, 'is checked of each token'])),
}

function checkClaim(
  claim: string,
  wanted: NonNullable<IdentityEntry['claims']>[string],
  note: Note,
): ClaimRule | undefined {
  const own = Object.hasOwn(OWN_SETTING, claim) ? OWN_SETTING[claim] : undefined
  if (own !== undefined) note(['claims', claim], own)
  if (typeof wanted === 'string') return { claim, ...equalRule(wanted) }
  const rule = noting(note, ['claims', claim, 'pattern'], () => patternRule(wanted.pattern))
  return rule === undefined ? undefined : { ...rule, claim }
}

/** Whoever has an account with the issuer would meet an entry that is bound by nothing. */
function requireBound(issuer: IssuerRule, subject: TextRule, claims: readonly ClaimRule[], note: Note): void {
  const takesAll =
    takesEverySubject(subject) ||
    (issuer.kind === 'trust_domain' && takesEveryWorkload(subject, issuer.domain))
  if (takesAll && claims.every((rule) => rule.isPattern))
    note(
      ['subject_pattern'],
      'takes every subject: add a claim that is compared by equality, such as repository_id: "123"',
    )
}

export function checkScopes(scopes: readonly string[], at: readonly (string | number)[], note: Note): void {
  for (const [index, scope] of scopes.entries()) {
    if (!isScope(scope))
      note([...at, index], `${quote(scope)} is not a scope of the form backend:resource:permission`)
    else if (isAdminScope(scope))
      note([...at, index], `${quote(scope)} is an admin scope; a login without a secret never gives those`)
  }
}

function checkReview({ token_review: review }: IdentityEntry, isLocal: boolean, note: Note): void {
  const fault = review === undefined ? undefined : addressFault(review.url, isLocal)
  if (fault !== undefined) note(['token_review', 'url'], fault)
}

function checkTimes(entry: IdentityEntry, note: Note) {
  const time = <K extends 'max_ttl' | 'agent_ttl' | 'token_ttl' | 'max_age'>(
    field: K,
    parse: (text: string) => number,
  ) => {
    const text = entry[field]
    return text === undefined ? undefined : noting(note, [field], () => parse(text))
  }
  return {
    maxTtlMs: time('max_ttl', (text) => parseBoundedDuration(text, 1_000, 36_500 * DAY_MS)),
    agentTtlMs: time('agent_ttl', (text) => parseBoundedDuration(text, 5_000, 366 * DAY_MS)) ?? HOUR_MS,
    tokenTtlMs: time('token_ttl', parseTokenTtl),
    maxAgeMs: time('max_age', (text) => parseBoundedDuration(text, 1_000, LONGEST_AGE_MS)) ?? FOREIGN_AGE_MS,
  }
}
