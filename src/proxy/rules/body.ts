import { escapeInQuery } from '../../domain/secret-forms.ts'
import type { HttpUse, Place } from '../../domain/use.ts'
import type { Live } from '../types.ts'
import type { Known, Placeholder } from './asked.ts'
import type { PlaceholderSearch } from './placeholders.ts'
import { isFor } from './places.ts'
import { type Range, replaceRanges } from './ranges.ts'
import { readParameters } from './target.ts'

export type BodyKind = 'form' | 'json'

/** Undefined: no place in a body of this `Content-Type`. */
export function bodyKind(contentType: string | undefined): BodyKind | undefined {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (type === 'application/x-www-form-urlencoded') return 'form'
  return type === 'application/json' || /^application\/[a-z0-9.-]+\+json$/.test(type) ? 'json' : undefined
}

type BodyPlace = Place & { readonly in: 'body' }

export function bodyPlaces({ places }: HttpUse): readonly BodyPlace[] {
  return places.filter((place) => place.in === 'body')
}

/** A body whose placeholders all stand where one use permits them. */
export interface FilledBody {
  readonly known: Known
  readonly placeholder: Placeholder
  /** Null: the credential has no value that fits. */
  write(live: Live): Buffer | null
}

export interface BodyFault {
  readonly reason: 'bad_body' | 'misplaced'
  readonly placeholder: Placeholder
}

/** Null: there is no placeholder in it. */
export function findInBody(
  body: Buffer,
  kind: BodyKind,
  candidates: readonly Known[],
  search: PlaceholderSearch,
): FilledBody | BodyFault | null {
  const text = body.toString('latin1')
  const [placeholder] = search.inText(text)
  if (placeholder === undefined) return null
  const values = kind === 'form' ? formValues(text) : jsonValues(body)
  if (values === null) return { reason: 'bad_body', placeholder }
  for (const known of candidates) {
    if (known.held !== placeholder.held) continue
    const places = bodyPlaces(known.use).filter(({ maxBytes }) => body.length <= maxBytes)
    const spots = values.flatMap((value) => spotOf(value, places, search))
    const rest = replaceRanges(text, spots, () => '\n')
    if (search.inText(rest).length > 0) continue
    return { known, placeholder, write: (live) => writeBody(text, spots, kind, live) }
  }
  return { reason: 'misplaced', placeholder }
}

interface Value {
  readonly name: string
  readonly value: string
  readonly from: number
  readonly to: number
}

function spotOf({ name, value, from, to }: Value, places: readonly BodyPlace[], search: PlaceholderSearch) {
  const place = places.find((one) => one.name === name && isFor(search.named(value), one.field))
  return place === undefined ? [] : [{ from, to, field: place.field ?? '' }]
}

function writeBody(text: string, spots: readonly (Range & { field: string })[], kind: BodyKind, live: Live) {
  if (spots.some(({ field }) => (live.secrets.get(field) ?? '') === '')) return null
  const written = replaceRanges(text, spots, ({ field }) => {
    const secret = (live.secrets.get(field) ?? '').toWellFormed()
    return kind === 'form' ? escapeInQuery(secret) : Buffer.from(JSON.stringify(secret)).toString('latin1')
  })
  return Buffer.from(written, 'latin1')
}

/** Null: a name stands twice, so servers may read either. */
function formValues(text: string): readonly Value[] | null {
  const values = readParameters(text).map((one) => ({ ...one, name: fromLatin1(one.name) }))
  return new Set(values.map(({ name }) => name)).size === values.length ? values : null
}

const fromLatin1 = (text: string) => Buffer.from(text, 'latin1').toString()

/** The top-level members with strings: with the place of the string, its quotes included, among the bytes. */
function jsonValues(body: Buffer): readonly Value[] | null {
  try {
    const parsed: unknown = JSON.parse(
      new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body),
    )
    if (parsed === null || typeof parsed !== 'object' || Array.isArray(parsed)) return null
  } catch {
    return null
  }
  return members(body.toString('latin1'))
}

/** Any string of JSON, or a bracket, colon or comma. */
const PIECE = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/g

/** Of a text that is a JSON object. Null: a name stands twice. */
function members(text: string): Value[] | null {
  const found: Value[] = []
  const names = new Set<string>()
  let depth = 0
  let name: string | undefined
  for (const { 0: piece, index } of text.matchAll(PIECE)) {
    if (piece === '{' || piece === '[') depth += 1
    else if (piece === '}' || piece === ']') depth -= 1
    else if (depth > 1 || piece === ':') continue
    else if (piece === ',') name = undefined
    else if (name === undefined) {
      name = parsedString(piece)
      if (names.has(name)) return null
      names.add(name)
    } else found.push({ name, value: parsedString(piece), from: index, to: index + piece.length })
  }
  return found
}

function parsedString(piece: string): string {
  return JSON.parse(fromLatin1(piece)) as string
}
