import { isObject } from '../formats/json.ts'
import { requireEmail, requireShownName } from './operator.ts'

/** What members of a group at a provider of single sign-on hold here. */
export interface SsoGroup {
  /** As the provider writes it: case counts. */
  readonly group: string
  readonly scopes: readonly string[]
  readonly backendScopes: readonly string[]
}

/** One login at a provider. Our side keeps all of it in a sealed cookie. */
export interface SsoRequest {
  /** The page of the console to which the provider sends the browser back. */
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** Of PKCE (RFC 7636 §4.1). */
  readonly verifier: string
}

/** Claims of an id token that was checked: signature, issuer, audience, nonce and times. */
export interface SsoClaims {
  readonly audience: string
  /** Epoch seconds. Undefined: the provider does not say when the person logged in. */
  readonly authTime: number | undefined
  readonly issuedAt: number
  readonly person: SsoPerson
}

/** What a provider says of a person. */
export interface SsoPerson {
  readonly issuer: string
  readonly subject: string
  /** In lower case; null unless the provider has verified it. */
  readonly email: string | null
  readonly name: string
  readonly groups: readonly string[]
  /** There are more than the provider puts into a token. */
  readonly isTruncated: boolean
}

/** A provider of single sign-on. It is asked when somebody logs in, and not before. */
export interface SsoProvider {
  /** Of its entry in the setting `sso`. */
  readonly name: string
  readonly issuer: string
  readonly groups: readonly SsoGroup[]
  /** The address where the person logs in; `isAgain`: also one who is logged in there. Throws `SsoFailure`. */
  begin(request: SsoRequest, isAgain: boolean): Promise<string>
  /** Takes the query string that the provider sent the browser back with. Throws `SsoFailure`. */
  finish(request: SsoRequest, parameters: string): Promise<SsoClaims>
}

/**
 * - `unreachable`: the provider did not answer, or failed.
 * - `misconfigured`: it does not know this client, or is not the issuer that the setting names.
 * - `refused`: it did not log the person in, or took the code back.
 * - `clock`: its clock and ours differ.
 * - `invalid`: what came is not its answer to this login.
 */
export type SsoFailureReason = 'unreachable' | 'misconfigured' | 'refused' | 'clock' | 'invalid'

export class SsoFailure extends Error {
  override readonly name = 'SsoFailure'
  readonly reason: SsoFailureReason

  /** `detail` is for the log. It holds no token, code or secret. */
  constructor(reason: SsoFailureReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

/** Printable ASCII: OpenID Connect Core 1.0, §2 allows no other, and 255 characters at most. */
const SUBJECT = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/

/** What claims say of a person. Throws `SsoFailure` for a subject that cannot name one. */
export function personOf(issuer: string, claims: Readonly<Record<string, unknown>>): SsoPerson {
  const { sub: subject, groups } = claims
  if (typeof subject !== 'string' || !SUBJECT.test(subject))
    throw new SsoFailure('invalid', 'the claim sub is not 1 to 255 printable characters')
  const email = verifiedEmail(claims)
  return {
    issuer,
    subject,
    email,
    name: shownName([claims['name'], claims['preferred_username'], email, subject.slice(0, 128)]),
    groups: [groups].flat().filter((group) => typeof group === 'string'),
    isTruncated: namesMoreGroups(claims),
  }
}

/** Some providers write `email_verified` as text. */
function verifiedEmail({ email, email_verified: isVerified }: Readonly<Record<string, unknown>>) {
  if (typeof email !== 'string' || (isVerified !== true && isVerified !== 'true')) return null
  try {
    return requireEmail(email)
  } catch {
    return null
  }
}

function shownName(candidates: readonly unknown[]): string {
  for (const name of candidates)
    try {
      if (typeof name !== 'string') continue
      requireShownName(name)
      return name
    } catch {
      // The next one may be shown.
    }
  return 'unnamed'
}

/** Microsoft Entra leaves the groups out where there are more than 200 (OpenID Connect Core 1.0, §5.6.2). */
function namesMoreGroups(claims: Readonly<Record<string, unknown>>): boolean {
  const names = claims['_claim_names']
  return claims['hasgroups'] === true || (isObject(names) && 'groups' in names)
}

/** What these groups give together. */
export function grantOf(
  mapping: readonly SsoGroup[],
  groups: readonly string[],
): { readonly scopes: string[]; readonly backendScopes: string[] } {
  const held = new Set(groups)
  const given = mapping.filter(({ group }) => held.has(group))
  return {
    scopes: [...new Set(given.flatMap(({ scopes }) => scopes))],
    backendScopes: [...new Set(given.flatMap(({ backendScopes }) => backendScopes))],
  }
}
