import { readFile } from 'node:fs/promises'
import { BackendError } from '../domain/backend-error.ts'
import { isObject, parseJson } from '../domain/formats/json.ts'
import type { KeySource, TokenReview } from '../domain/identity/identity.ts'
import type { AddressLookup } from '../egress/address.ts'
import { createEgressFetch } from '../egress/fetch.ts'
import { createListenerCheck, type ListenerRules } from '../egress/listener.ts'
import { readKeySet, type UsableKey } from './key-set.ts'

/** What asking issuers needs of this machine. */
export interface IdentityWays {
  readonly lookup: AddressLookup
  readonly timeoutMs: number
  readonly log: ListenerRules['log']
  /** The server's clock, epoch ms. */
  readonly now: () => number
}

/** Longest document of an issuer, and the longest wait for one: a login asks for two. */
export const MAX_DOCUMENT_BYTES = 102_400
const MOST_WAIT_MS = 5_000

export type Fetch = (url: string, init?: RequestInit) => Promise<Response>

/** Under the egress rules, with the certificates of the source. Throws `BackendError`. */
export function createFetch({ ca, local }: KeySource, { lookup, timeoutMs, log }: IdentityWays): Fetch {
  const checkListener = createListenerCheck({ serviceAccounts: [], localUser: '', log })
  const wait = Math.min(timeoutMs, MOST_WAIT_MS)
  const fetch = createEgressFetch({ local, lookup, timeoutMs: wait, checkListener })
  return (url, init) =>
    fetch(url, init, { maxBytes: MAX_DOCUMENT_BYTES, ...(ca === undefined ? {} : { ca }) })
}

/** The keys that an issuer publishes. Throws `Error`, whose message holds nothing that the issuer sent. */
export async function fetchKeys(
  issuer: string,
  source: KeySource & { readonly tokenReview: TokenReview | undefined },
  fetch: Fetch,
): Promise<UsableKey[]> {
  const { jwksUri, tokenReview } = source
  if (jwksUri !== undefined) return readKeys(await getDocument(jwksUri, source, fetch))
  // The API publishes them to service accounts only (system:service-account-issuer-discovery).
  if (tokenReview !== undefined) {
    const authorization = await bearerOf(tokenReview)
    return readKeys(
      await getDocument(`${withoutSlash(tokenReview.url)}/openid/v1/jwks`, source, fetch, { authorization }),
    )
  }
  // OpenID Connect Discovery 1.0, §4.1: only the address leaves out a slash at the end; the issuer is compared as it is (§4.3).
  const metadata = await getDocument(
    `${withoutSlash(issuer)}/.well-known/openid-configuration`,
    source,
    fetch,
  )
  if (!isObject(metadata) || metadata['issuer'] !== issuer)
    throw new Error('the discovery document is of another issuer')
  const { jwks_uri: uri } = metadata
  if (typeof uri !== 'string') throw new Error('the discovery document has no jwks_uri')
  return readKeys(await getDocument(uri, source, fetch))
}

/** kubelet renews the file, so it is read each time. Throws `Error`. */
export async function bearerOf({ tokenFile }: TokenReview): Promise<string> {
  try {
    return `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}`
  } catch (cause) {
    throw new Error('the token_file of token_review cannot be read', { cause })
  }
}

export const withoutSlash = (url: string) => url.replace(/\/$/, '')

/** What a failed request says, for the audit and the log. */
export function failureOf(error: unknown): string {
  if (!(error instanceof BackendError)) return error instanceof Error ? error.message : 'unknown'
  return error.detail === undefined ? error.message : `${error.message} (${error.detail})`
}

async function getDocument(
  url: string,
  { local }: KeySource,
  fetch: Fetch,
  headers: Record<string, string> = {},
): Promise<unknown> {
  if (!local && !url.startsWith('https://')) throw new Error('an address of the issuer is not https')
  const reply = await fetch(url, { headers: { accept: 'application/json', ...headers } }).catch(
    (error: unknown) => {
      throw new Error(failureOf(error), { cause: error })
    },
  )
  if (reply.status !== 200) throw new Error(`the issuer answered ${reply.status}`)
  return parseJson(await reply.text())
}

function readKeys(document: unknown): UsableKey[] {
  const keys = readKeySet(document)
  if (keys === undefined) throw new Error('the issuer has sent no JWK set')
  return keys
}
