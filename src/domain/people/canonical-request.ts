/**
 * JSON in the one form of RFC 8785 (JSON Canonicalization Scheme): no spaces, numbers and texts as ECMAScript writes them,
 * members by the UTF-16 units of their names. Throws `TypeError` for what is no I-JSON: half of a surrogate pair, a number
 * that is not finite, any other type. Recursive: the caller bounds the depth.
 */
export function toCanonicalJson(value: unknown): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return canonicalText(value)
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(',')}]`
  if (typeof value !== 'object') throw new TypeError('the value has no canonical form')
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  // Not by an object: that would put names that are integers first.
  members.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${canonicalText(name)}:${toCanonicalJson(member)}`).join(',')}}`
}

function canonicalText(text: string): string {
  if (!text.isWellFormed()) throw new TypeError('the text has half of a surrogate pair')
  return JSON.stringify(text)
}

/** What a person confirms: exactly one request, once, at about this time. */
export interface AskedRequest {
  readonly method: string
  /** With the query, as it was sent. */
  readonly path: string
  /** As it was read; null without a body. */
  readonly body: unknown
}

/** The text whose SHA-256 is the challenge that a passkey signs. `time` is RFC 3339, `nonce` base64url. */
export function confirmedText(
  { method, path, body }: AskedRequest,
  { nonce, time }: { readonly nonce: string; readonly time: string },
): string {
  return toCanonicalJson({ method, path, body, nonce, time })
}
