/** Of a request that somebody signed by AWS Signature Version 4. */
export interface Signed {
  /** In `Authorization`, or in the query (a presigned URL). */
  readonly form: 'header' | 'query'
  readonly keyId: string
  /** `20261127T101500Z`. */
  readonly time: string
  readonly region: string
  /** The signing name, as `s3`. */
  readonly service: string
  /** In lower case, as the client named them. */
  readonly signedHeaders: readonly string[]
  /** How the signature covers the body. */
  readonly payload: Payload
}

export type Payload =
  /** The hash stands in a header or needs none: the body passes as it is. */
  | { readonly kind: 'stated'; readonly hash: string }
  /** The body must be read whole, and hashed: `MAX_HASHED_BODY` at most. */
  | { readonly kind: 'hashed' }
  /** Each chunk of `aws-chunked` carries a signature: the body goes through `createChunkSigner`. */
  | { readonly kind: 'chunks'; readonly hash: string; readonly trailer: boolean }

/** Why a request cannot be signed anew. The codes stand in `rules/refusals.ts`. */
export interface SignRefusal {
  readonly reason:
    | 'signature_malformed'
    | 'signature_version'
    | 'signature_service'
    | 'signature_payload'
    | 'signature_token'
  /** For the reply: says what is wrong, and repeats nothing of the request. */
  readonly message: string
}

export type SignedOr<T> = ({ readonly ok: true } & T) | ({ readonly ok: false } & SignRefusal)

export interface SignedRequest {
  readonly method: string
  /** As sent: path and query. */
  readonly target: string
  /** As received. */
  readonly headers: readonly (readonly [string, string])[]
}

/** Reads strictly; what is not exactly the form of a signature is refused. */
export function readSigned(_request: SignedRequest): SignedOr<{ readonly signed: Signed }> {
  throw new Error('not built yet')
}
