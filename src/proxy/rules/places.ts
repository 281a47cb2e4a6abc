import { escapeInPath, escapeInQuery } from '../../domain/secret-forms.ts'
import type { HttpUse, Place } from '../../domain/use.ts'
import type { Live } from '../types.ts'
import type { Asked, Placeholder } from './asked.ts'
import type { Read } from './headers.ts'
import type { PlaceholderSearch } from './placeholders.ts'
import { type Parameter, readParameters, type Target } from './target.ts'

/** Where placeholders stand that the use permits there, and how each is replaced. */
export interface Spots {
  readonly headers: readonly HeaderSpot[]
  readonly target: readonly TargetSpot[]
  readonly places: readonly Place[]
}

export interface HeaderSpot {
  /** Among the headers as received. */
  readonly index: number
  /** The value without the placeholder: nothing else may stand in it. */
  readonly rest: string
  /** Null: the credential has no value that fits. */
  write(live: Live): string | null
}

export interface TargetSpot {
  readonly from: number
  readonly to: number
  readonly inPath: boolean
  write(live: Live): string | null
}

export interface Sought {
  readonly asked: Asked
  readonly read: Read
  readonly target: Target
  readonly search: PlaceholderSearch
  /** All that stand in the request. */
  readonly found: readonly Placeholder[]
  /** Value of `Host` that is sent. */
  readonly host: string
}

const WITH_SCHEME = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+ +)?(\S+)$/
const BASIC = /^(basic +)([0-9A-Za-z+/_-]+)=*$/i

export function findSpots(use: HttpUse, sought: Sought): Spots {
  const headers = new Map<number, HeaderSpot>()
  const target = new Map<number, TargetSpot>()
  const places: Place[] = []
  for (const place of use.places) {
    const inHeader =
      place.in === 'header'
        ? headerSpot(place, sought)
        : place.in === 'basic'
          ? basicSpot(use, sought)
          : undefined
    const inTarget =
      place.in === 'query'
        ? querySpot(place, sought)
        : place.in === 'path'
          ? pathSpot(place, sought)
          : undefined
    if (inHeader !== undefined) headers.set(inHeader.index, inHeader)
    if (inTarget !== undefined) target.set(inTarget.from, inTarget)
    if (inHeader !== undefined || inTarget !== undefined) places.push(place)
  }
  const inOrder = [...target.values()].sort((one, other) => one.from - other.from)
  return { headers: [...headers.values()], target: inOrder, places }
}

/** The one header of this name; of several, an upstream may read any. */
export function oneHeader({ asked, read }: Pick<Sought, 'asked' | 'read'>, name: string) {
  const index = read.names.indexOf(name)
  if (index === -1 || read.names.indexOf(name, index + 1) !== -1 || read.dropped.has(name)) return undefined
  return { index, value: asked.headers[index]?.[1] ?? '' }
}

export function isFor(
  placeholder: Placeholder | undefined,
  field: string | undefined,
): placeholder is Placeholder {
  return placeholder?.fields.includes(field ?? '') === true
}

function headerSpot(place: Place & { in: 'header' }, sought: Sought): HeaderSpot | undefined {
  const header = oneHeader(sought, place.name.toLowerCase())
  const [, scheme = '', value = ''] = WITH_SCHEME.exec(header?.value ?? '') ?? []
  if (header === undefined || !isFor(sought.search.named(value), place.field)) return undefined
  const write = (live: Live) => {
    const secret = secretOf(live, place.field)
    return secret === null || !isHeaderText(secret) ? null : `${scheme}${secret}`
  }
  return { index: header.index, rest: scheme, write }
}

/** A pair, in which one or both are placeholders. */
function basicSpot(use: HttpUse, sought: Sought): HeaderSpot | undefined {
  const header = oneHeader(sought, 'authorization')
  const [, scheme = '', encoded] = BASIC.exec(header?.value ?? '') ?? []
  if (header === undefined || encoded === undefined) return undefined
  const pair = Buffer.from(encoded, 'base64').toString('latin1')
  const colon = pair.indexOf(':')
  if (colon === -1) return undefined
  const parts = [pair.slice(0, colon), pair.slice(colon + 1)] as const
  const fields = parts.map((part) => basicField(use, sought.search.named(part)))
  const [user, password] = fields
  if (user === undefined && password === undefined) return undefined
  const write = (live: Live) => {
    const sent = parts.map((part, index) => {
      const field = fields[index]
      if (field !== undefined) return secretOf(live, field.name)
      // A renewed credential may have another user.
      const open = index === 0 && part !== '' ? live.open.get('username') : undefined
      return open === undefined ? part : Buffer.from(open).toString('latin1')
    })
    const [name, secret] = sent
    if (name === null || secret === null || name === undefined || name.includes(':')) return null
    return `${scheme}${Buffer.from(`${name}:${secret}`, 'latin1').toString('base64')}`
  }
  const rest = parts.filter((_, index) => fields[index] === undefined).join(':')
  return { index: header.index, rest: `${scheme}${rest}`, write }
}

function basicField(use: HttpUse, placeholder: Placeholder | undefined) {
  const place = use.places.find((one) => one.in === 'basic' && isFor(placeholder, one.field))
  return place && { name: place.field }
}

function querySpot(place: Place & { in: 'query' }, { target, search }: Sought): TargetSpot | undefined {
  const parameter = oneParameter(target, place.name)
  if (parameter === undefined || !isFor(search.named(parameter.value), place.field)) return undefined
  const offset = target.path.length + 1
  const write = (live: Live) => escaped(live, place.field, escapeInQuery)
  return { from: offset + parameter.from, to: offset + parameter.to, inPath: false, write }
}

export function oneParameter({ query }: Target, name: string): Parameter | undefined {
  if (query === null) return undefined
  const latin1 = Buffer.from(name).toString('latin1')
  const found = readParameters(query).filter((parameter) => parameter.name === latin1)
  return found.length === 1 ? found[0] : undefined
}

function pathSpot(
  place: Place & { in: 'path' },
  { target: { path }, found }: Sought,
): TargetSpot | undefined {
  for (const placeholder of found) {
    if (!isFor(placeholder, place.field)) continue
    const value = placeholder.held.placeholders.get(placeholder.fields[0] ?? '')
    const from = value === undefined ? -1 : path.indexOf(value)
    if (value === undefined || from === -1) continue
    const write = (live: Live) => escaped(live, place.field, escapeInPath)
    return { from, to: from + value.length, inPath: true, write }
  }
  return undefined
}

/** In latin1, as headers are. */
export function secretOf({ secrets }: Live, field: string | undefined): string | null {
  const secret = secrets.get(field ?? '')
  return secret === undefined || secret === '' ? null : Buffer.from(secret).toString('latin1')
}

function escaped(
  { secrets }: Live,
  field: string | undefined,
  write: (text: string) => string,
): string | null {
  const secret = secrets.get(field ?? '')
  // A dot segment would be another path.
  if (secret === undefined || !secret.isWellFormed() || /^\.{0,2}$/.test(secret)) return null
  return write(secret)
}

function isHeaderText(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  return !/[\u0000-\u001f\u007f]/.test(text) && text.trim() === text
}
