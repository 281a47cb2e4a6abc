import type { OutgoingHttpHeaders } from 'node:http2'

/* Headers as Node gives them raw: names and values in turn. */

export function pairsOf(flat: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([flat[at] ?? '', flat[at + 1] ?? ''])
  return pairs
}

/**
 * For sessions of HTTP/2: several lines of a header that should have one go on, as over HTTP/1. Many a server sends
 * `X-Content-Type-Options` twice.
 */
export const AS_RECEIVED = { strictSingleValueFields: false }

/** As Node wants headers of HTTP/2: names in lower case, several values as a list. */
export function toFields(flat: readonly string[]): OutgoingHttpHeaders {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = (flat[at] ?? '').toLowerCase()
    const value = flat[at + 1] ?? ''
    const known = fields[name]
    if (known === undefined) fields[name] = value
    else if (typeof known === 'string') fields[name] = [known, value]
    else known.push(value)
  }
  return fields
}
