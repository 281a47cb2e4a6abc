/** DER (X.690), as far as certificates and lists of revoked ones need it. */
export const BOOLEAN = 0x01
export const INTEGER = 0x02
export const BIT_STRING = 0x03
export const OCTET_STRING = 0x04
const OBJECT_ID = 0x06
export const UTF8_STRING = 0x0c
export const SEQUENCE = 0x30
export const SET = 0x31
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18

/** One value (X.690 §8.1.3). */
export function der(tag: number, ...parts: readonly ArrayLike<number>[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const size: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) size.unshift(rest % 256)
  const head = length < 128 ? [tag, length] : [tag, 0x80 | size.length, ...size]
  const value = new Uint8Array(head.length + length)
  value.set(head)
  let at = head.length
  for (const part of parts) {
    value.set(part, at)
    at += part.length
  }
  return value
}

/** An object identifier, from the hexadecimal digits of its content. */
export function oid(hex: string): Uint8Array<ArrayBuffer> {
  return der(
    OBJECT_ID,
    (hex.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)),
  )
}

/** UTCTime until 2049, then GeneralizedTime (RFC 5280 §5.1.2.4). */
export function derTime(ms: number): Uint8Array<ArrayBuffer> {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return text < '2050' ? der(UTC_TIME, ascii(text.slice(2))) : der(GENERALIZED_TIME, ascii(text))
}

export function ascii(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (char) => char.charCodeAt(0))
}
