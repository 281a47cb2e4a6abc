/** An id is a prefix and a 128-bit UUIDv7 (RFC 9562 §5.7) as 26 characters of lower-case Crockford base32. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const BODY = '[0-7][0-9a-hjkmnp-tv-z]{25}'

export const ID_PREFIX = {
  credential: 'cred_',
  agent: 'ag_',
  enrollment: 'enr_',
  client: 'agent_',
  audit: 'aud_',
  request: 'req_',
  backend: 'be_',
  operator: 'op_',
  session: 'ses_',
  passkey: 'pk_',
  run: 'run_',
} as const

export type IdKind = keyof typeof ID_PREFIX

const PATTERNS = Object.fromEntries(
  Object.entries(ID_PREFIX).map(([kind, prefix]) => [kind, new RegExp(`^${prefix}${BODY}$`)]),
) as Record<IdKind, RegExp>

export function isId(kind: IdKind, text: string): boolean {
  return text.length <= 40 && PATTERNS[kind].test(text)
}

/** The first 10 characters are the 48 bits of ms after two zero bits, so that text order is time order. */
export function encodeTime(ms: number): string {
  let text = ''
  let rest = ms
  for (let index = 0; index < 10; index += 1) {
    text = ALPHABET.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/**
 * The last 16 characters of a UUIDv7 (80 bits): version 7, a 12-bit counter that keeps the ids of one ms in
 * order (RFC 9562 §6.2, method 1), variant 2, and 62 random bits taken from the low bits of 13 bytes.
 */
export function encodeTail(counter: number, random: Uint8Array, offset = 0): string {
  let text = ALPHABET.charAt(14 | (counter >> 11)) + ALPHABET.charAt((counter >> 6) & 31)
  text += ALPHABET.charAt((counter >> 1) & 31)
  text += ALPHABET.charAt(((counter & 1) << 4) | 8 | ((random[offset] ?? 0) & 3))
  for (let index = 1; index < 13; index += 1) text += ALPHABET.charAt((random[offset + index] ?? 0) & 31)
  return text
}

/** The 128 bits of an id in hexadecimal digits. */
export function hexOf(kind: IdKind, id: string): string {
  const digits = id.slice(ID_PREFIX[kind].length)
  // The first two digits carry 8 bits, and each four of the others 20: integers that are fast to write.
  let text = numberOf(digits.slice(0, 2)).toString(16).padStart(2, '0')
  for (let at = 2; at < digits.length; at += 4) {
    text += numberOf(digits.slice(at, at + 4))
      .toString(16)
      .padStart(5, '0')
  }
  return text
}

function numberOf(digits: string): number {
  let value = 0
  for (const digit of digits) value = value * 32 + ALPHABET.indexOf(digit)
  return value
}

/** The smallest id body of a time: all ids created at or after `ms` sort at or after it. */
export function lowestBodyAt(ms: number): string {
  return encodeTime(Math.max(0, Math.min(ms, 2 ** 48 - 1))) + '0'.repeat(16)
}

/** Epoch ms at which the id with this body was made. */
export function timeOfBody(body: string): number {
  return numberOf(body.slice(0, 10))
}

/** Like `lowestBodyAt`, with the prefix of its kind: ids created before `ms` sort before it. */
export function lowestIdAt(kind: IdKind, ms: number): string {
  return ID_PREFIX[kind] + lowestBodyAt(ms)
}
