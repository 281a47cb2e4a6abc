import type { Asked, Refused } from '../rules/asked.ts'
import { ALGORITHM, isS3, readQuery, type Scope } from './canonical.ts'

/** What AWS Signature Version 4 says in a request. */
export interface Signed extends Scope {
  /** In `Authorization`, or in the query (a presigned URL). */
  readonly form: 'header' | 'query'
  readonly keyId: string
  /** In hex. */
  readonly signature: string
  /** In lower case, as the client named them. */
  readonly signedHeaders: readonly string[]
  /** How the signature covers the body. */
  readonly payload: Payload
}

export type Payload =
  /** `hash` is in a header, or stands for any body: the body passes as it is. */
  | { readonly kind: 'stated'; readonly hash: string }
  /** The body must be read whole, and hashed: at most `MAX_HASHED_BODY`. */
  | { readonly kind: 'hashed' }
  /** Each chunk of `aws-chunked` has a signature: the body passes through a signer of chunks. */
  | { readonly kind: 'chunks'; readonly hash: string; readonly hasTrailer: boolean }

export type SignedRequest = Pick<Asked, 'method' | 'target' | 'headers'>

const CREDENTIAL = /^(\w{1,128})\/(\d{8})\/([A-Za-z0-9-]{1,64})\/([A-Za-z0-9-]{1,64})\/aws4_request$/
const TIME = /^\d{8}T\d{6}Z$/
const SIGNATURE = /^[0-9a-f]{64}$/
const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const MOST_HEADERS = 100
const LONGEST_PRESIGNED_S = 604_800
const UNSIGNED = 'UNSIGNED-PAYLOAD'
const STATED: ReadonlySet<string> = new Set([UNSIGNED, 'STREAMING-UNSIGNED-PAYLOAD-TRAILER'])
const CHUNKS = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD'

const QUERY_NAMES = [
  'X-Amz-Algorithm',
  'X-Amz-Credential',
  'X-Amz-Date',
  'X-Amz-Expires',
  'X-Amz-SignedHeaders',
  'X-Amz-Signature',
  'X-Amz-Security-Token',
  'X-Amz-Content-Sha256',
] as const
type QueryName = (typeof QUERY_NAMES)[number]

export const BAD_SIGNATURE: Refused = { kind: 'refuse', reason: 'bad_signature' }

/**
 * Reads strictly: what two programs could read in two ways is refused, and so are Signature Version 4A, which signs for a set of
 * regions with another kind of key, and events that are signed one by one.
 */
export function readSigned({ target, headers }: SignedRequest): Signed | Refused {
  const parameters = signingParameters(queryOf(target))
  const authorization = valuesOf(headers, 'authorization')
  if (parameters === undefined || authorization.length > 1) return BAD_SIGNATURE
  const [value] = authorization
  if ((value === undefined) === (parameters.size === 0)) return BAD_SIGNATURE
  const read = value === undefined ? readForm(parameters, headers) : readHeader(value, headers)
  return read ?? BAD_SIGNATURE
}

export function queryOf(target: string): string {
  return splitTarget(target)[1]
}

/** The query without `?`; empty where there is none. */
export function splitTarget(target: string): [path: string, query: string] {
  const at = target.indexOf('?')
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

export function valuesOf(headers: SignedRequest['headers'], name: string): string[] {
  return headers.filter(([one]) => one.toLowerCase() === name).map(([, value]) => value.trim())
}

/** Those of the query that belong to a signature; undefined: one is there twice, or in another spelling. */
function signingParameters(query: string): Map<QueryName, string> | undefined {
  const found = new Map<QueryName, string>()
  for (const [name, value] of readQuery(query)) {
    const known = QUERY_NAMES.find((one) => one.toLowerCase() === name.toLowerCase())
    if (known === undefined) continue
    if (known !== name || found.has(known)) return undefined
    found.set(known, value)
  }
  return found
}

function readHeader(value: string, headers: SignedRequest['headers']): Signed | undefined {
  if (!value.startsWith(`${ALGORITHM} `)) return undefined
  const pairs = value
    .slice(ALGORITHM.length + 1)
    .split(',')
    .map((part) => /^\s*(Credential|SignedHeaders|Signature)=(\S+)\s*$/.exec(part))
  const parts = new Map(pairs.map((match) => [match?.[1], match?.[2] ?? '']))
  if (pairs.length !== 3 || parts.size !== 3 || parts.has(undefined)) return undefined
  const scope = readScope(parts.get('Credential'), timeOf(headers))
  const signedHeaders = readNames(parts.get('SignedHeaders'))
  const hashes = valuesOf(headers, 'x-amz-content-sha256')
  const payload = hashes.length > 1 ? undefined : readPayload(hashes[0] ?? null)
  if (scope === undefined || signedHeaders === undefined || payload === undefined) return undefined
  const signature = parts.get('Signature') ?? ''
  if (!SIGNATURE.test(signature)) return undefined
  return { form: 'header', ...scope, signedHeaders, signature, payload }
}

function readForm(
  parameters: ReadonlyMap<QueryName, string>,
  headers: SignedRequest['headers'],
): Signed | undefined {
  if (parameters.get('X-Amz-Algorithm') !== ALGORITHM) return undefined
  const seconds = parameters.get('X-Amz-Expires') ?? '1'
  if (!/^\d{1,6}$/.test(seconds) || Number(seconds) < 1 || Number(seconds) > LONGEST_PRESIGNED_S)
    return undefined
  const signature = parameters.get('X-Amz-Signature') ?? ''
  if (!SIGNATURE.test(signature)) return undefined
  const scope = readScope(parameters.get('X-Amz-Credential'), parameters.get('X-Amz-Date'))
  const signedHeaders = readNames(parameters.get('X-Amz-SignedHeaders'))
  if (scope === undefined || signedHeaders === undefined) return undefined
  const inHeader = valuesOf(headers, 'x-amz-content-sha256')
  const named = parameters.get('X-Amz-Content-Sha256')
  if (inHeader.length + (named === undefined ? 0 : 1) > 1) return undefined
  const payload = readPayload(named ?? inHeader[0] ?? (isS3(scope.service) ? UNSIGNED : null))
  if (payload === undefined || payload.kind === 'chunks') return undefined
  return { form: 'query', ...scope, signedHeaders, signature, payload }
}

function readScope(credential = '', time = ''): (Scope & { readonly keyId: string }) | undefined {
  const [, keyId, day, region, service] = CREDENTIAL.exec(credential) ?? []
  if (keyId === undefined || region === undefined || service === undefined) return undefined
  return TIME.test(time) && time.slice(0, 8) === day ? { keyId, time, region, service } : undefined
}

function readNames(text = ''): string[] | undefined {
  const names = text.split(';')
  const isSet = new Set(names).size === names.length && names.length <= MOST_HEADERS
  return isSet && names.includes('host') && names.every((name) => TOKEN.test(name)) ? names : undefined
}

/** `X-Amz-Date`, or where there is none `Date` (SigV4, "Date handling"). */
function timeOf(headers: SignedRequest['headers']): string | undefined {
  const own = valuesOf(headers, 'x-amz-date')
  if (own.length > 0) return own.length === 1 ? own[0] : undefined
  const [date, ...more] = valuesOf(headers, 'date')
  if (date === undefined || more.length > 0) return undefined
  if (TIME.test(date)) return date
  const ms = Date.parse(date)
  return Number.isNaN(ms) ? undefined : `${new Date(ms).toISOString().replace(/[-:]|\.\d+/g, '')}`
}

function readPayload(hash: string | null): Payload | undefined {
  if (hash === null) return { kind: 'hashed' }
  if (SIGNATURE.test(hash) || STATED.has(hash)) return { kind: 'stated', hash }
  if (hash === CHUNKS || hash === `${CHUNKS}-TRAILER`)
    return { kind: 'chunks', hash, hasTrailer: hash !== CHUNKS }
  return undefined
}
