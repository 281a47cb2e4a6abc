import { isUtf8 } from 'node:buffer'
import { authorityText, readAuthority } from '../../domain/network/authority.ts'
import type { Asked } from './asked.ts'

/** The target of a request in its two parts, as sent. */
export interface Target {
  readonly path: string
  /** Without `?`; null: there is none, which differs from an empty one. */
  readonly query: string | null
}

/** A path as the rules read it: each segment decoded once, to latin1. */
export interface Path {
  readonly segments: readonly string[]
  /** It has `%2F` or `//`, which stand inside of a segment. */
  readonly slashes: boolean
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const CONTROL = /[\u0000-\u0020\u007f]/
const ABSOLUTE = /^(https?):\/\/([^/?#]*)(.*)$/i

/** `expected`: the canonical authorities that an absolute form may name. Null: the target is not a path of this authority. */
export function readTarget({ target, scheme, listener }: Asked, expected: readonly string[]): Target | null {
  if (CONTROL.test(target)) return null
  if (target.startsWith('/')) return split(target)
  const [, named = '', authority = '', rest = ''] = ABSOLUTE.exec(target) ?? []
  const lower = named.toLowerCase()
  if (lower !== 'http' && lower !== 'https') return null
  if (lower !== scheme && listener === undefined) return null
  const read = readAuthority(authority, lower)
  if (read === undefined || !expected.includes(authorityText(read))) return null
  return split(rest.startsWith('/') ? rest : `/${rest}`)
}

function split(target: string): Target {
  const at = target.indexOf('?')
  return at === -1
    ? { path: target, query: null }
    : { path: target.slice(0, at), query: target.slice(at + 1) }
}

/** What needs no decoding, and cannot be a dot segment. */
const PLAIN = /^(?:\/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9_~!$&'()*+,=:@.-]*)*\/?$/

/**
 * Null for what two programs could read in two ways: dot segments, backslashes, control characters, invalid escapes, a fragment, bytes
 * that are not UTF-8; all of them escaped, too. An escape in an escape stays text.
 */
export function readPath(path: string): Path | null {
  if (PLAIN.test(path)) return { segments: path.slice(1).split('/'), slashes: false }
  if (!/^\/[\u0021-\u007e]*$/.test(path) || /[\\#]/.test(path)) return null
  const parts = splitSegments(path)
  const segments: string[] = []
  for (const part of parts) {
    const segment = decode(part)
    if (segment === null || CONTROL_OR_BACKSLASH.test(segment) || segment.split('/').some(isDots)) return null
    segments.push(segment)
  }
  return { segments, slashes: segments.some((segment) => segment.includes('/')) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const CONTROL_OR_BACKSLASH = /[\u0000-\u001f\u007f\\]/

/** Some servers drop parameters (`..;a`), what follows an escaped `?`, and spaces before they look for dots. */
function isDots(piece: string): boolean {
  const end = piece.search(/[;?#]/)
  const text = (end === -1 ? piece : piece.slice(0, end)).trim()
  return text === '.' || text === '..'
}

/** Splits at each slash that stands alone; of several together all but that at the root belong to a segment. */
function splitSegments(path: string): string[] {
  if (!path.includes('//')) return path.slice(1).split('/')
  const parts: string[] = []
  let start = 1
  for (let at = 1; at < path.length; at += 1) {
    if (path[at] !== '/' || path[at - 1] === '/' || path[at + 1] === '/') continue
    parts.push(path.slice(start, at))
    start = at + 1
  }
  return [...parts, path.slice(start)]
}

/** Decodes percent escapes once, to latin1. Null: an escape is invalid, or the bytes are not UTF-8. */
function decode(text: string): string | null {
  if (!text.includes('%')) return text
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return null
  const decoded = unescapePercent(text)
  return isUtf8(Buffer.from(decoded, 'latin1')) ? decoded : null
}

/** Decodes what is a valid escape, and leaves the rest. */
export function unescapePercent(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** One parameter of a query or a form, decoded, and where its value stands as sent. */
export interface Parameter {
  readonly name: string
  readonly value: string
  readonly from: number
  readonly to: number
}

export function readParameters(query: string): Parameter[] {
  const found: Parameter[] = []
  for (let start = 0; start <= query.length; ) {
    const next = query.indexOf('&', start)
    const to = next === -1 ? query.length : next
    const equals = query.indexOf('=', start)
    const from = equals === -1 || equals >= to ? to : equals + 1
    const name = query.slice(start, from === to && query[to - 1] !== '=' ? to : from - 1)
    if (to > start)
      found.push({ name: decodeParameter(name), value: decodeParameter(query.slice(from, to)), from, to })
    start = to + 1
  }
  return found
}

function decodeParameter(text: string): string {
  return text.includes('%') || text.includes('+') ? unescapePercent(text.replaceAll('+', ' ')) : text
}
