import type { Claims, Identity, IssuerRule, Refusal } from './identity.ts'

/** What a condition is held against. */
export interface TokenFacts {
  /** SPIFFE JWT-SVIDs may lack it. */
  readonly issuer: string | undefined
  readonly subject: string
  /** All claims, `aud` included. */
  readonly claims: Claims
}

export interface FailedCondition {
  readonly reason: Refusal
  /** Its place in the entry: `audience`, `subject`, `subject_pattern` or `claims.repository_id`. Never a value of the token. */
  readonly condition: string
}

const MAX_ISSUER = 255
const HOST = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:.]+\])`
const ISSUER = new RegExp(String.raw`^https?://${HOST}(?::\d{1,5})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*/?$`)

/** Whether it is an address without user, query, fragment, `..` and empty segments; one slash may stand at its end. */
export function isIssuer(text: string): boolean {
  return text.length <= MAX_ISSUER && ISSUER.test(text) && !text.includes('..')
}

/**
 * OpenID Connect Core §2: at most 255 characters. No quotes, brackets and control characters, and no white space but single
 * spaces inside: Terraform's `sub` has the name of a project, such as `Default Project`. Bitbucket's has ids in braces.
 */
export function isSubject(text: string): boolean {
  return (
    text.length >= 1 && text.length <= 255 && /^[^\s\p{C}"'`\\<>[\]]+(?: [^\s\p{C}"'`\\<>[\]]+)*$/u.test(text)
  )
}

/** SPIFFE-ID §2.1 and §2.2. */
const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/
const SPIFFE_ID = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)+)$/

export function isTrustDomain(text: string): boolean {
  return TRUST_DOMAIN.test(text)
}

/** The trust domain of a SPIFFE id of a workload; undefined if it is none. */
export function trustDomainOf(subject: string): string | undefined {
  const [, domain, path = ''] = SPIFFE_ID.exec(subject) ?? []
  return path.split('/').some((segment) => segment === '.' || segment === '..') ? undefined : domain
}

/** Issuers are compared as they are: neither case nor a slash at the end is touched. */
export function issuerMatches(
  rule: IssuerRule,
  { issuer, subject }: Pick<TokenFacts, 'issuer' | 'subject'>,
): boolean {
  switch (rule.kind) {
    case 'issuer':
      return issuer === rule.issuer
    case 'pattern':
      // Otherwise a tenant's own issuer could end in text that the pattern of the host wants.
      return issuer !== undefined && isIssuer(issuer) && rule.rule.matches(issuer)
    case 'trust_domain':
      return trustDomainOf(subject) === rule.domain
  }
}

/** Whether `aud` is the audience of the entry, or a list of exactly that one. */
export function audienceMatches({ audience }: Pick<Identity, 'audience'>, aud: unknown): boolean {
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
  return only === audience
}

/**
 * The text of a claim: of booleans and whole numbers, too; undefined for anything else, and for numbers whose digits JSON
 * loses. Nested claims are written with `/`. A claim whose whole name matches comes first, then the longest beginning of
 * the path that names an object: AWS has claims below `https://sts.amazonaws.com/`.
 */
export function readClaim(claims: Claims, path: string): string | undefined {
  if (Object.hasOwn(claims, path)) return textOf(claims[path])
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const name = path.slice(0, end)
    const inner = Object.hasOwn(claims, name) ? claims[name] : undefined
    if (typeof inner === 'object' && inner !== null && !Array.isArray(inner))
      return readClaim(inner as Claims, path.slice(end + 1))
  }
  return undefined
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'boolean' || Number.isSafeInteger(value) ? String(value) : undefined
}

/**
 * The first condition of the entry that the token does not meet: the audience, then the subject, then the claims, those
 * compared by equality first; undefined: it meets all. The issuer is not looked at.
 */
export function failedCondition(entry: Identity, token: TokenFacts): FailedCondition | undefined {
  const { subject, claims } = entry
  if (!audienceMatches(entry, token.claims['aud'])) return { reason: 'audience', condition: 'audience' }
  if (!isSubject(token.subject) || !subject.matches(token.subject))
    return { reason: 'subject', condition: subject.isPattern ? 'subject_pattern' : 'subject' }
  const equalFirst = [...claims.filter((one) => !one.isPattern), ...claims.filter((one) => one.isPattern)]
  const failed = equalFirst.find((rule) => {
    const value = readClaim(token.claims, rule.claim)
    return value === undefined || !rule.matches(value)
  })
  return failed === undefined ? undefined : { reason: 'claim', condition: `claims.${failed.claim}` }
}
