import type { Transform } from 'node:stream'
import type { Place } from '../../domain/use.ts'
import type { Applied, Header, Refused } from '../rules/asked.ts'
import type { Live } from '../types.ts'
import {
  ALGORITHM,
  canonicalRequest,
  encode,
  readQuery,
  type SigningKey,
  scopeText,
  signatureOf,
  signingKey,
} from './canonical.ts'
import { createChunkSigner } from './chunks.ts'
import {
  BAD_SIGNATURE,
  queryOf,
  type Signed,
  type SignedRequest,
  splitTarget,
  valuesOf,
} from './read-signed.ts'

export type SigV4Place = Extract<Place, { readonly in: 'sigv4' }>

/** The largest body that is read whole to be hashed. What AWS takes in one call of a service that is not S3 is smaller. */
export const MAX_HASHED_BODY = 32 * 1024 * 1024

export interface ToSign {
  /** What will be sent, but for what is replaced here: without headers of a connection or of a proxy. */
  readonly request: SignedRequest
  readonly signed: Signed
  readonly place: SigV4Place
  readonly live: Live
  /** By field, of the same credential. */
  readonly placeholders: ReadonlyMap<string, string>
  /** For `Host`: `s3.eu-west-1.amazonaws.com`, with a port that is not the scheme's. */
  readonly host: string
  /** SHA-256 of the body in hex, where the payload is `hashed`. */
  readonly bodyHash?: string | undefined
  /** What the client has signed: its chunks are compared with it. */
  readonly claim?: { readonly key: SigningKey; readonly seed: string }
}

export interface SignedAnew extends Applied {
  readonly kind: 'signed'
  /** What the body must pass through, where the payload is `chunks`. */
  readonly body?: Transform
}

const DATE = 'x-amz-date'
const SESSION = 'x-amz-security-token'
/** Of one connection, or changed on the way: a signature over them would break. */
const NEVER_SIGNED: ReadonlySet<string> = new Set(
  'authorization connection expect keep-alive proxy-authorization te trailer transfer-encoding upgrade'.split(
    ' ',
  ),
)
/** Takes the session token only behind the signature (IoT Core, "MQTT over WebSocket"). */
export const TOKEN_UNSIGNED: ReadonlySet<string> = new Set(['iotdevicegateway'])
const VISIBLE = /^[\x21-\x7e]+$/

/** The same request, signed with the real key. What the client signed stays signed, and so is every `x-amz-…` header. */
export function signAnew(asked: ToSign): SignedAnew | Refused {
  const { signed, place, live, placeholders, bodyHash } = asked
  const keyId = live.secrets.get(place.keyId)
  const secret = live.secrets.get(place.field ?? '')
  const token = place.token === undefined ? undefined : live.secrets.get(place.token)
  if (!isFit(keyId) || !isFit(secret) || (token !== undefined && !isFit(token)))
    return { kind: 'refuse', reason: 'unfit_secret' }
  if (signed.keyId !== placeholders.get(place.keyId)) return BAD_SIGNATURE
  if (!hasOwnToken(asked)) return BAD_SIGNATURE
  const payloadHash = signed.payload.kind === 'hashed' ? bodyHash : signed.payload.hash
  if (payloadHash === undefined) return BAD_SIGNATURE
  const key = signingKey(secret, signed)
  const keys = { keyId, token, key, payloadHash }
  return signed.form === 'header' ? signHeaders(asked, keys) : signQuery(asked, keys)
}

function isFit(secret: string | undefined): secret is string {
  return secret !== undefined && VISIBLE.test(secret)
}

/** A session token that is not the placeholder is somebody else's. */
function hasOwnToken({ request, signed, place, placeholders }: ToSign): boolean {
  const inHeaders = valuesOf(request.headers, SESSION)
  const inQuery = readQuery(queryOf(request.target))
    .filter(([name]) => name === 'X-Amz-Security-Token')
    .map(([, value]) => value)
  const own = place.token === undefined ? undefined : placeholders.get(place.token)
  const [sent, other] = signed.form === 'header' ? [inHeaders, inQuery] : [inQuery, inHeaders]
  return other.length === 0 && sent.length <= 1 && sent.every((value) => value === own)
}

interface Keys {
  readonly keyId: string
  readonly token: string | undefined
  readonly key: ReturnType<typeof signingKey>
  readonly payloadHash: string
}

function signHeaders(asked: ToSign, { keyId, token, key, payloadHash }: Keys): SignedAnew {
  const { request, signed, host, claim } = asked
  const hasDate = valuesOf(request.headers, DATE).length > 0
  const headers: Header[] = [
    ...withHost(request.headers, host).filter(
      ([name]) => !/^(?:authorization|x-amz-security-token)$/i.test(name),
    ),
    ...(hasDate ? [] : [[DATE, signed.time] as const]),
    ...(token === undefined ? [] : [[SESSION, token] as const]),
  ]
  const own = headers.map(([name]) => name.toLowerCase()).filter((name) => name.startsWith('x-amz-'))
  const signedHeaders = toSign(signed.signedHeaders, headers, own)
  const [path, query] = splitTarget(request.target)
  const canonical = canonicalRequest({
    ...{ method: request.method, path, query, headers, signedHeaders, payloadHash },
    service: signed.service,
  })
  const signature = signatureOf(key, canonical)
  const credential = `${keyId}/${scopeText(signed)}`
  const value = `${ALGORITHM} Credential=${credential}, SignedHeaders=${signedHeaders.join(';')}, Signature=${signature}`
  const made: SignedAnew = {
    kind: 'signed',
    target: request.target,
    headers: [...headers, ['authorization', value]],
  }
  const { payload } = signed
  if (payload.kind !== 'chunks') return made
  return { ...made, body: createChunkSigner({ key, seed: signature, hasTrailer: payload.hasTrailer, claim }) }
}

function signQuery({ request, signed, host }: ToSign, { keyId, token, key, payloadHash }: Keys): SignedAnew {
  const headers = withHost(request.headers, host)
  const signedHeaders = toSign(signed.signedHeaders, headers, [])
  const [path, sent] = splitTarget(request.target)
  const set = new Map([
    ['X-Amz-Credential', `${keyId}/${scopeText(signed)}`],
    ['X-Amz-SignedHeaders', signedHeaders.join(';')],
  ])
  const late = TOKEN_UNSIGNED.has(signed.service)
  const tokenPair = token === undefined ? [] : [`X-Amz-Security-Token=${encode(token)}`]
  const pairs = sent.split('&').filter((pair) => pair !== '')
  const kept = pairs.flatMap((pair) => {
    const name = readQuery(pair)[0]?.[0] ?? ''
    if (name === 'X-Amz-Signature' || name === 'X-Amz-Security-Token') return []
    const value = set.get(name)
    return [value === undefined ? pair : `${name}=${encode(value)}`]
  })
  const query = [...kept, ...(late ? [] : tokenPair)].join('&')
  const canonical = canonicalRequest({
    ...{ method: request.method, path, query, headers, signedHeaders, payloadHash },
    service: signed.service,
  })
  const ending = [`X-Amz-Signature=${signatureOf(key, canonical)}`, ...(late ? tokenPair : [])]
  return { kind: 'signed', target: `${path}?${[query, ...ending].join('&')}`, headers }
}

function withHost(headers: readonly Header[], host: string): Header[] {
  return [['host', host], ...headers.filter(([name]) => name.toLowerCase() !== 'host')]
}

/** Only what is sent can be signed. */
function toSign(named: readonly string[], headers: readonly Header[], own: readonly string[]): string[] {
  const sent = new Set(headers.map(([name]) => name.toLowerCase()))
  return [...new Set([...named, ...own, 'host'])]
    .filter((name) => sent.has(name) && !NEVER_SIGNED.has(name))
    .sort()
}
