import type { Transform } from 'node:stream'
import type { Place } from '../../domain/use.ts'
import type { Live } from '../types.ts'
import type { Signed, SignedOr, SignedRequest } from './read-signed.ts'

export type SigV4Place = Extract<Place, { readonly in: 'sigv4' }>

/** A body that is read whole to be hashed has at most this. */
export const MAX_HASHED_BODY = 32 * 1024 * 1024

export interface ToSign {
  /** Exactly what will be sent, but for what is replaced here: hop-by-hop headers are gone already. */
  readonly request: SignedRequest
  readonly signed: Signed
  readonly place: SigV4Place
  readonly live: Live
  /** By field, of the same credential. */
  readonly placeholders: ReadonlyMap<string, string>
  /** `Host` of the upstream: `s3.eu-west-1.amazonaws.com`, with a port that is not the scheme's. */
  readonly host: string
  /** In hex, of the body, where `signed.payload` is `hashed`. */
  readonly bodyHash?: string | undefined
}

export interface SignedAnew {
  readonly target: string
  readonly headers: [string, string][]
  /** What the body must pass through, where `signed.payload` is `chunks`. */
  readonly body?: Transform
}

/** Whether the service that was signed for may be called, by the lists of the place. */
export function checkService(
  _request: SignedRequest,
  _signed: Signed,
  _place: SigV4Place,
  _authority: string,
): SignedOr<unknown> {
  throw new Error('not built yet')
}

export function signAnew(_asked: ToSign): SignedOr<SignedAnew> {
  throw new Error('not built yet')
}
