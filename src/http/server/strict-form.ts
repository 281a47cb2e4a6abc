import { invalid } from '../../domain/problems.ts'

export const MAX_FORM_FIELDS = 64

/**
 * Reads `application/x-www-form-urlencoded` (RFC 6749 appendix B). The result has no prototype. Parameters without
 * a value are left out (RFC 6749 §3.2: treated as omitted), but still may not be repeated. Throws
 * `invalid_request`, never quoting the input, for: bytes outside printable ASCII, a bad percent-encoding or bad
 * UTF-8 behind one, control characters (NUL among them), a repeated, empty or nameless parameter, and more than
 * `MAX_FORM_FIELDS` of them.
 */
export function parseStrictForm(body: Buffer): Record<string, string> {
  const fields: Record<string, string> = Object.create(null)
  if (body.length === 0) return fields
  const text = body.toString('latin1')
  if (!/^[\x20-\x7e]*$/.test(text))
    throw invalid('The form contains characters that must be percent-encoded.')
  const parts = text.split('&', MAX_FORM_FIELDS + 1)
  if (parts.length > MAX_FORM_FIELDS) throw invalid(`The form has more than ${MAX_FORM_FIELDS} parameters.`)
  const seen = new Set<string>()
  for (const part of parts) {
    const equals = part.indexOf('=')
    const name = decode(equals === -1 ? part : part.slice(0, equals))
    if (name === '') throw invalid('The form has a parameter without a name.')
    // RFC 6749 §3.2: parameters must not be included more than once.
    if (seen.has(name)) throw invalid('The form has the same parameter twice.')
    seen.add(name)
    const value = equals === -1 ? '' : decode(part.slice(equals + 1))
    if (value !== '') fields[name] = value
  }
  return fields
}

function decode(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  let decoded: string
  try {
    // Throws on a bad escape and on bytes that are not UTF-8, overlong forms and surrogates included.
    decoded = decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalid('The form has an invalid percent-encoding.')
  }
  for (let index = 0; index < decoded.length; index += 1) {
    const code = decoded.charCodeAt(index)
    if (code < 0x20 || code === 0x7f) throw invalid('The form contains a control character.')
  }
  return decoded
}
