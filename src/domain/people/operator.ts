import { MAX_NAME_LENGTH } from '../limits.ts'
import { invalid } from '../problems.ts'
import { coversAny, isAdminScope, requireScopes } from '../scope.ts'

/** A person who administers this server. */
export interface Operator {
  readonly id: string
  /** In lower case. Null: their provider of single sign-on has not verified one. */
  readonly email: string | null
  readonly name: string
  /** Admin scopes. */
  readonly scopes: readonly string[]
  /** Scopes of backends that the operator may grant to agents. */
  readonly backendScopes: readonly string[]
  readonly version: number
  /** How many sessions were started. */
  readonly logins: number
  readonly createdAt: number
  /** The actor who invited them; `local` for the first. */
  readonly createdBy: string
  /** When they first logged in; null: they were only invited. */
  readonly joinedAt: number | null
  readonly lastLoginAt: number | null
  readonly endedAt: number | null
  /** The name of the entry of `sso` by which they logged in; null for one who was invited here, as are the next two. */
  readonly provider: string | null
  /** Who they are (OpenID Connect Core 1.0, §2: `iss` and `sub`). Never an e-mail address, which can change hands. */
  readonly issuer: string | null
  readonly subject: string | null
}

/** How entries name an operator who acts. */
export function operatorActor({
  email,
  issuer,
  subject,
}: Pick<Operator, 'email' | 'issuer' | 'subject'>): string {
  return `operator:${email ?? `${issuer}#${subject}`}`
}

const MAX_EMAIL = 254
/** What the HTML standard accepts as a valid e-mail address, in lower case: nothing in it needs escaping or folding. */
const EMAIL =
  /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/

/** The address in lower case. Throws `invalid_request`. */
export function requireEmail(text: string): string {
  // Only ASCII: `toLowerCase` makes ASCII letters of some others, such as the Kelvin sign.
  const email = /^[\x21-\x7e]+$/.test(text) ? text.toLowerCase() : ''
  if (email.length > MAX_EMAIL || !EMAIL.test(email)) throw invalid('"email" is not an e-mail address.')
  return email
}

/** Letters of any script. No control or format characters: some change the direction of the text around them. */
const SHOWN_NAME = /^(?!\s)[^\p{C}\p{Zl}\p{Zp}]+(?<!\s)$/u

/** A name that pages and entries show. Throws `invalid_request`, which names the field. */
export function requireShownName(name: string, field = 'name', most = MAX_NAME_LENGTH): void {
  if (name.length > most || !SHOWN_NAME.test(name))
    throw invalid(`"${field}" must have 1 to ${most} printable characters, and no space at either end.`)
}

/** Throws `invalid_request`. */
export function requireOperatorScopes(scopes: readonly string[], backendScopes: readonly string[]): void {
  requireScopes(scopes, 'scopes')
  requireScopes(backendScopes, 'backend_scopes')
  if (!scopes.every(isAdminScope))
    throw invalid('"scopes" may contain only admin scopes; scopes of backends belong in "backend_scopes".')
  if (backendScopes.some(isAdminScope))
    throw invalid('"backend_scopes" may contain only scopes of backends; admin scopes belong in "scopes".')
}

/** Whether these are all admin scopes. */
export const holdsAllAdmin = (scopes: readonly string[]): boolean => coversAny(scopes, 'admin:*')
