import { readOrigin } from './network/authority.ts'
import type { HttpUse, Place, Rule } from './use.ts'
import { readPathPattern } from './use-pattern.ts'

/**
 * What a schema cannot say of uses. Each function returns what is wrong, with the field (`allow[2].path must …`), or undefined;
 * nothing of the input is repeated.
 */
type Fault = string | undefined

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/
const METHOD = /^[A-Z](?:[A-Z-]{0,30}[A-Z])?$/
const SIGNING_NAME = /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/
/** Those that the proxy reads or writes itself, or that belong to one connection: no secret can stand there. */
const NEVER_PLACES = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'te', 'trailer', 'upgrade'],
  ...['expect', 'date', 'content-type', 'content-encoding', 'accept-encoding', 'forwarded', 'http2-settings'],
])
const MAX_BODY_BYTES = 1_048_576

export function useFault(use: HttpUse): Fault {
  return (
    originFault(use) ??
    first('places', use.places, placeFault) ??
    first('allow', use.allow, ruleFault) ??
    first('deny', use.deny, ruleFault)
  )
}

/** The methods and the pattern of one rule. */
export function ruleFault({ methods, path, slashes }: Rule): Fault {
  if (methods.length === 0) return '.methods must name at least one'
  const all = methods.includes('*')
  if (all && methods.length > 1) return '.methods may have * only alone'
  if (!all && !methods.every(isMethod))
    return '.methods must be methods in capitals, other than CONNECT and TRACE'
  const read = readPathPattern(path, slashes === true)
  return typeof read === 'string' ? `.path ${read}` : undefined
}

/** Also of a request: a method of today, in capitals; an upstream may take others for these. */
export function isMethod(method: string): boolean {
  return METHOD.test(method) && method !== 'CONNECT' && method !== 'TRACE'
}

/** Where a use is: its scheme, and whom a `*.` may stand for. */
export function originFault({ origin, local, places }: HttpUse): Fault {
  const read = readOrigin(origin)
  if (read === undefined)
    return '.origin must be https://HOST or https://HOST:PORT, with nothing behind, and two labels after a *.'
  if (read.scheme === 'http' && !local) return '.origin must be https unless the use is local'
  if (!read.wildcard) return undefined
  if (local) return '.origin must name one host if the use is local'
  // A signature is of no use anywhere else; any other secret would reach every host below the name.
  const signs = places.length > 0 && places.every((place) => place.in === 'sigv4')
  return signs ? undefined : '.origin may begin with *. only where every place is sigv4'
}

export function placeFault(place: Place): Fault {
  switch (place.in) {
    case 'header':
      if (!TOKEN.test(place.name)) return '.name must be the name of a header'
      return isReserved(place.name) ? '.name must be a header that can carry a secret' : undefined
    case 'query':
      return place.name === '' ? '.name must not be empty' : undefined
    case 'body':
      if (place.name === '') return '.name must not be empty'
      return Number.isInteger(place.maxBytes) && place.maxBytes > 0 && place.maxBytes <= MAX_BODY_BYTES
        ? undefined
        : `.max_bytes must be from 1 to ${MAX_BODY_BYTES}`
    case 'sigv4':
      if (place.keyId === '') return '.key_id must name a field'
      return (
        first('.allow', place.allow ?? [], signingNameFault) ?? first('.deny', place.deny, signingNameFault)
      )
    case 'basic':
    case 'path':
      return undefined
  }
}

function isReserved(name: string): boolean {
  const lower = name.toLowerCase()
  return NEVER_PLACES.has(lower) || /^(?:proxy|x-mayfly|x-forwarded)-/.test(lower)
}

/** As AWS has them in the scope of a signature. */
export function isSigningName(name: string): boolean {
  return SIGNING_NAME.test(name)
}

function signingNameFault(name: string): Fault {
  return isSigningName(name) ? undefined : ' must be a signing name of AWS, as s3'
}

function first<T>(field: string, items: readonly T[], check: (item: T) => Fault): Fault {
  for (const [index, item] of items.entries()) {
    const fault = check(item)
    if (fault !== undefined) return `${field}[${index}]${fault}`
  }
  return undefined
}
