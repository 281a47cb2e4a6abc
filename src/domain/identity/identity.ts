/**
 * Keyless login: a workload shows a token that somebody else signed. An _identity_ is an entry of the setting `identities`,
 * which says whose tokens are trusted and what agent a workload becomes; a _platform_ is an entry of `platforms`, each of
 * whose workloads is an agent without rights until somebody gives it some.
 */

/** Compiled from a pattern (RE2 syntax, over the whole value) or a text (equal). */
export interface TextRule {
  /** As the configuration has it. */
  readonly text: string
  readonly isPattern: boolean
  matches(value: string): boolean
}

export interface ClaimRule extends TextRule {
  /** `repository_id`, or of a nested claim `kubernetes.io/serviceaccount/uid`. */
  readonly claim: string
}

/** Whose tokens they are. SPIFFE JWT-SVIDs may lack `iss`: their trust domain is in `sub`. */
export type IssuerRule =
  | { readonly kind: 'issuer'; readonly issuer: string }
  | { readonly kind: 'pattern'; readonly rule: TextRule }
  | { readonly kind: 'trust_domain'; readonly domain: string }

/** Where the keys of an issuer are. Without `jwks` and `jwksUri`: where its discovery document says. */
export interface KeySource {
  /** RFC 7517, as configured. */
  readonly jwks: { readonly keys: readonly Readonly<Record<string, unknown>>[] } | undefined
  readonly jwksUri: string | undefined
  /** PEM of the authorities to trust instead of the system's. */
  readonly ca: string | undefined
  /** The issuer is on this machine or in its own network. */
  readonly local: boolean
}

/** Kubernetes TokenReview: the API is asked whether the pod and the account still exist. */
export interface TokenReview {
  /** Address of the API. */
  readonly url: string
  /** Read for each question: kubelet renews it. */
  readonly tokenFile: string
}

/** A fixed name, or text with claims in braces, such as `ci-{run_id}`. */
export interface AgentTemplate {
  readonly text: string
  /** Text and claims, alternating as written. */
  readonly parts: readonly ({ readonly text: string } | { readonly claim: string })[]
}

interface TrustEntry {
  readonly name: string
  readonly keys: KeySource
  /** Equal to `aud`, or to the one member of it. */
  readonly audience: string
}

/** An entry of `identities`. Times in ms. */
export interface Identity extends TrustEntry {
  readonly issuer: IssuerRule
  readonly subject: TextRule
  readonly claims: readonly ClaimRule[]
  readonly agent: AgentTemplate
  /** `share`: all logins with the same values are one agent. `suffix`: each is an agent of its own. */
  readonly concurrent: 'share' | 'suffix'
  readonly scopes: readonly string[]
  /** Longest ttl of credentials; undefined: that of the backend. */
  readonly maxTtlMs: number | undefined
  /** How long the agent lives after a login. */
  readonly agentTtlMs: number
  /** Lifetime of the access token; undefined: the server's, and ten minutes after the end of the presented token at most. */
  readonly tokenTtlMs: number | undefined
  /** Oldest `iat` that is taken. */
  readonly maxAgeMs: number
  /** Each presented token is taken once. */
  readonly once: boolean
  /** `observe`: grants nothing, and records what it would have granted. */
  readonly mode: 'enforce' | 'observe'
  readonly tokenReview: TokenReview | undefined
}

/** What a claim gives to an agent of a platform. */
export interface PlatformScopes {
  readonly claim: string
  /** Equal to the claim, or to one member of a list. */
  readonly value: string
  readonly scopes: readonly string[]
}

/** An entry of `platforms` (Workload Authorization Grant). */
export interface Platform extends TrustEntry {
  readonly issuer: string
  readonly scopes: readonly PlatformScopes[]
}

/** What the configuration trusts. */
export interface Trusted {
  readonly identities: readonly Identity[]
  readonly platforms: readonly Platform[]
}

/** Claims of a token whose signature was checked. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Why a token is refused. Only the audit has it, and `mayfly identity test`:
 * - `malformed`, `algorithm`, `unknown_issuer`, `unknown_key`, `signature`: it is no token of an issuer that is trusted.
 * - `keys_unavailable`: the keys of the issuer cannot be had.
 * - `expired`, `not_yet_valid`, `too_old`, `repeated`: its time, or its use.
 * - `audience`, `subject`, `claim`: a condition of the entry fails; no entry matches.
 * - `ambiguous`: two entries match.
 * - `legacy`: a Kubernetes token that does not end. `reviewed`: the API of Kubernetes does not know it any more.
 * - `value`: a claim cannot be part of a name. `name_taken`: somebody else has the name.
 * - `observed`: the entry grants nothing yet.
 */
export const REFUSALS = [
  ...(['malformed', 'algorithm', 'unknown_issuer', 'unknown_key', 'signature', 'keys_unavailable'] as const),
  ...([
    'expired',
    'not_yet_valid',
    'too_old',
    'repeated',
    'audience',
    'subject',
    'claim',
    'ambiguous',
  ] as const),
  ...(['legacy', 'reviewed', 'value', 'name_taken', 'observed'] as const),
] as const
export type Refusal = (typeof REFUSALS)[number]

/** A token is refused. `detail` is for the audit alone. */
export class IdentityRefused extends Error {
  override readonly name = 'IdentityRefused'
  readonly reason: Refusal
  /** The entries that it was held against, by their names. */
  readonly entries: readonly string[]
  readonly detail: string | undefined

  constructor(reason: Refusal, entries: readonly string[] = [], detail?: string) {
    super(reason)
    this.reason = reason
    this.entries = entries
    this.detail = detail
  }
}

/** An entry of either setting. */
export type AnyEntry =
  | { readonly kind: 'identity'; readonly identity: Identity }
  | { readonly kind: 'platform'; readonly platform: Platform }

/** All entries of both settings, those of `identities` first. */
export function entriesOf({ identities, platforms }: Trusted): AnyEntry[] {
  return [
    ...identities.map((identity) => ({ kind: 'identity', identity }) as const),
    ...platforms.map((platform) => ({ kind: 'platform', platform }) as const),
  ]
}

/** Whom a token proves. */
export interface ProvenWorkload {
  /** Exactly one. */
  readonly entry: AnyEntry
  readonly issuer: string
  readonly subject: string
  readonly claims: Claims
  /** Epoch ms. */
  readonly expiresAt: number
  /** Makes the token single-use; undefined: it may be used again. */
  readonly use: { readonly id: string; readonly rememberUntil: number } | undefined
}

/** The name of the entry in the configuration. */
export function nameOfEntry(entry: AnyEntry): string {
  return entry.kind === 'identity' ? entry.identity.name : entry.platform.name
}

/** How an agent says which entry it came under: `identity:` or `platform:` and the name. */
export function keyOfEntry(entry: AnyEntry): string {
  return `${entry.kind}:${nameOfEntry(entry)}`
}
