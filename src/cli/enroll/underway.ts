import type { PrivateJwk } from '../../client/assertion.ts'
import { type Client, MayflyError, type Reply } from '../../client/client.ts'
import type { Enrolled } from '../../client/wire.ts'
import { noteWarnings } from '../admin/warnings.ts'
import type { Context } from '../frame/verb.ts'
import { findKeychain } from '../session/keychain.ts'
import { loadSecret, removeSecret, saveSecret } from '../session/secrets.ts'

/** The agent as requested. */
export interface AgentRequest {
  readonly name: string
  readonly scopes?: readonly string[] | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** An unfinished enrollment of this profile, stored before anything is sent. */
export interface Underway {
  readonly server: string
  /** What the server calls itself, once that is agreed. */
  readonly issuer?: string | undefined
  readonly ca_file?: string | undefined
  readonly request: AgentRequest
  readonly private_jwk: PrivateJwk
  /** RFC 7638 thumbprint, as the administrator sees it. */
  readonly fingerprint: string
  /** Set once the server has answered. */
  readonly enrollment?:
    | { readonly id: string; readonly expires_at: string; readonly poll_ms: number }
    | undefined
}

export async function loadUnderway(context: Context, profileName: string): Promise<Underway | undefined> {
  for (const place of placesOf(context)) {
    const found = await loadSecret<Underway>(context, `${profileName}/enrollment`, place)
    if (found !== undefined) return found
  }
  return undefined
}

export async function saveUnderway(context: Context, profileName: string, value: Underway): Promise<void> {
  await saveSecret(context, `${profileName}/enrollment`, value)
}

export async function removeUnderway(context: Context, profileName: string): Promise<void> {
  for (const place of placesOf(context)) await removeSecret(context, `${profileName}/enrollment`, place)
}

function placesOf(context: Context): ('file' | 'keychain')[] {
  const keychain = findKeychain(context, context.globals.keychain !== false)
  return keychain === undefined ? ['file'] : ['file', 'keychain']
}

/** A new Ed25519 key pair. The private half never leaves this machine. */
export async function newKey(): Promise<Pick<Underway, 'private_jwk' | 'fingerprint'>> {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  if (!('privateKey' in pair)) throw new Error('Ed25519 gave no pair of keys')
  const { kty, crv, x, d } = await crypto.subtle.exportKey('jwk', pair.privateKey)
  if (kty === undefined || crv === undefined || x === undefined || d === undefined)
    throw new Error('Ed25519 gave no private key')
  const members = new TextEncoder().encode(JSON.stringify({ crv, kty, x }))
  const digest = await crypto.subtle.digest('SHA-256', members)
  return { private_jwk: { kty, crv, x, d }, fingerprint: Buffer.from(digest).toString('base64url') }
}

/** The only part of the key that is sent. */
export function publicHalf({ private_jwk: { kty, crv, x } }: Underway) {
  return { kty, crv, x }
}

export type Submitted = Underway & { readonly enrollment: NonNullable<Underway['enrollment']> }

export function isSubmitted(underway: Underway): underway is Submitted {
  return underway.enrollment !== undefined
}

/**
 * Submits the enrollment and stores its id. The server returns the same enrollment to the same key, so after a lost
 * reply we submit again. Drops an enrollment that the server refuses for good.
 */
export async function submit(
  context: Context,
  client: Client,
  profileName: string,
  underway: Underway,
): Promise<Submitted> {
  const { name, scopes, metadata } = underway.request
  const body = { name, public_key: publicHalf(underway), scopes, metadata }
  const reply = await client
    .call<Enrolled>({ method: 'POST', path: '/v1/enroll', body, retry: 'always' })
    .catch(async (error: unknown) => {
      if (isFinal(error)) await removeUnderway(context, profileName)
      throw error
    })
  const { id, expires_at, poll_interval_ms, warnings } = checked(reply)
  if (!context.out.isJson) noteWarnings(context, { warnings })
  const submitted = { ...underway, enrollment: { id, expires_at, poll_ms: poll_interval_ms } }
  await saveUnderway(context, profileName, submitted)
  return submitted
}

/** Validates the reply: an administrator copies the id into a command line. Throws `MayflyError`. */
function checked({ status, body }: Reply<Enrolled>): Enrolled {
  const isWhole =
    /^enr_[0-9a-z]{26}$/.test(body?.id) &&
    Number.isFinite(Date.parse(body.expires_at)) &&
    Number.isSafeInteger(body.poll_interval_ms)
  if (isWhole) return body
  const message = 'What answered does not look like a Mayfly server.'
  throw new MayflyError({ code: 'unexpected_reply', status, message })
}

/** The server stored nothing and will not. */
export function isFinal(error: unknown): boolean {
  return error instanceof MayflyError && error.status < 500 && error.status !== 429 && error.status !== 409
}
