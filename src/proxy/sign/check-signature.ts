import { timingSafeEqual } from 'node:crypto'
import type { Header, Refused } from '../rules/asked.ts'
import { canonicalRequest, type SigningKey, signatureOf, signingKey } from './canonical.ts'
import { BAD_SIGNATURE, type Signed, splitTarget } from './read-signed.ts'
import { type SigV4Place, TOKEN_UNSIGNED } from './sign-anew.ts'

/** What a client has signed with its placeholder. */
export interface Claim {
  readonly key: SigningKey
  /** Signature of the request, which that of the first chunk includes. */
  readonly seed: string
}

export interface ToCheck {
  readonly method: string
  /** Origin form, as received. */
  readonly target: string
  /** As received, with the `Host` that the client has called. */
  readonly headers: readonly Header[]
  readonly signed: Signed
  readonly place: SigV4Place
  readonly placeholders: ReadonlyMap<string, string>
  readonly bodyHash: string | undefined
}

/**
 * Whether the holder of the placeholder signed exactly this. The id of a key is in every presigned URL and in logs: without this
 * whoever read it could have any request signed, and a signature that is wrong or was changed would become right.
 */
export function checkSignature(asked: ToCheck): Claim | Refused {
  const { method, target, headers, signed, place, placeholders, bodyHash } = asked
  const secret = placeholders.get(place.field ?? '')
  const payloadHash = signed.payload.kind === 'hashed' ? bodyHash : signed.payload.hash
  if (secret === undefined || payloadHash === undefined) return BAD_SIGNATURE
  const key = signingKey(secret, signed)
  const [path, query] = splitTarget(target)
  const canonical = canonicalRequest({
    ...{ method, path, headers, payloadHash, service: signed.service },
    query: signed.form === 'header' ? query : unsignedQuery(query, signed.service),
    signedHeaders: signed.signedHeaders.toSorted(),
  })
  const expected = Buffer.from(signatureOf(key, canonical))
  if (!timingSafeEqual(expected, Buffer.from(signed.signature))) return BAD_SIGNATURE
  return { key, seed: signed.signature }
}

/** The signature is not part of what it signs. */
function unsignedQuery(query: string, service: string): string {
  const late = TOKEN_UNSIGNED.has(service)
  return query
    .split('&')
    .filter((pair) => !/^X-Amz-Signature=/.test(pair) && !(late && /^X-Amz-Security-Token=/.test(pair)))
    .join('&')
}
