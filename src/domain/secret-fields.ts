import { isOpenField } from './open-fields.ts'
import type { HttpUse, Use } from './use.ts'

/** A credential as the server issues it. */
export interface CredentialParts {
  /** The one value, or the JSON text of the fields. */
  readonly token?: string | undefined
  readonly fields?: Readonly<Record<string, string | number>> | undefined
}

/** The fields of a credential by what becomes of them where somebody gets placeholders. `''` is the one value. */
export interface SplitCredential {
  /** Replaced by a placeholder. */
  readonly secrets: ReadonlyMap<string, string>
  /** Neither a secret nor made of one. */
  readonly open: ReadonlyMap<string, string>
  /** Made of others, and so made again of their placeholders: a kubeconfig, a URL with a password. */
  readonly composed: ReadonlyMap<string, string>
}

/** Says which object of which account it is, and nothing that lets anybody in. A field that a use puts somewhere is a secret. */
const NAMES_OF_THINGS: ReadonlySet<string> = new Set(
  'id namespace vhost base dn bucket project organization tenant account registry expires_at'.split(' '),
)
const ADDRESSES: ReadonlySet<string> = new Set('url uri address addr endpoint server'.split(' '))
/** Whole files for programs, which hold a secret that stands in another field, too. */
const FILES: ReadonlySet<string> = new Set(['kubeconfig', 'docker_config'])
/** PEM blocks that everybody may have. */
const PUBLIC_PEM =
  /^(?:\s*-----BEGIN (CERTIFICATE|PUBLIC KEY)-----\r?\n[A-Za-z0-9+/=\r\n]+-----END \1-----\s*)+$/

/** What is not known to be open is a secret. */
export function splitCredential({ token, fields }: CredentialParts, uses: readonly Use[]): SplitCredential {
  const secrets = new Map<string, string>()
  const open = new Map<string, string>()
  const composed = new Map<string, string>()
  const placed = placedFields(uses)
  const origins = new Set(httpUses(uses).map(({ origin }) => origin))
  const rest: [string, string][] = []
  for (const [name, given] of Object.entries(fields ?? {})) {
    const value = String(given)
    if (value === '') open.set(name, value)
    else if (placed.has(name)) secrets.set(name, value)
    else if (isOpenField(name) || NAMES_OF_THINGS.has(name) || PUBLIC_PEM.test(value)) open.set(name, value)
    else rest.push([name, value])
  }
  for (const [name, value] of rest) {
    if (isPlainAddress(name, value, origins)) open.set(name, value)
    else if (isComposed(name, value, fields)) composed.set(name, value)
    else secrets.set(name, value)
  }
  if (token !== undefined && (fields === undefined || !isTextOf(token, fields))) secrets.set('', token)
  return { secrets, open, composed }
}

/** Whether `token` only repeats the fields, as the server writes it for a credential that has no one value. */
export function isTextOf(token: string, fields: Readonly<Record<string, string | number>>): boolean {
  if (!token.startsWith('{')) return false
  try {
    const said = Object.entries(JSON.parse(token) as object)
    return said.length === Object.keys(fields).length && said.every(([name, value]) => fields[name] === value)
  } catch {
    return false
  }
}

/** The password of a URL, decoded; undefined: it has none. */
export function passwordOf(value: string): string | undefined {
  const url = readUrl(value)
  if (url === undefined || url.password === '') return undefined
  try {
    return decodeURIComponent(url.password)
  } catch {
    return undefined
  }
}

function httpUses(uses: readonly Use[]): HttpUse[] {
  return uses.filter((use): use is HttpUse => use.protocol === 'http')
}

/** Fields that go into a request as a secret, whatever they are called. */
function placedFields(uses: readonly Use[]): Set<string> {
  const places = httpUses(uses).flatMap((use) => use.places)
  return new Set(
    places.flatMap((place) => [
      ...(place.field === undefined || (place.in === 'basic' && isOpenField(place.field))
        ? []
        : [place.field]),
      ...(place.in === 'sigv4' ? [place.keyId, ...(place.token === undefined ? [] : [place.token])] : []),
    ]),
  )
}

/** The path of a webhook is its secret, so one with a path is plain only at the origin of a use. */
function isPlainAddress(name: string, value: string, origins: ReadonlySet<string>): boolean {
  const url = readUrl(value)
  if (url === undefined || url.username !== '' || url.password !== '') return false
  if (url.search !== '' || url.hash !== '') return false
  return origins.has(url.origin) || (ADDRESSES.has(name) && (url.pathname === '' || url.pathname === '/'))
}

function isComposed(name: string, value: string, fields: CredentialParts['fields'] = {}): boolean {
  if (FILES.has(name)) return true
  const password = passwordOf(value)
  return (
    password !== undefined && Object.entries(fields).some(([one, text]) => one !== name && text === password)
  )
}

function readUrl(value: string): URL | undefined {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : undefined
}
