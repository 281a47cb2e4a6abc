/**
 * The bytes of unpadded base64url text, or `undefined` if the text is empty or not the canonical encoding. Node's
 * decoder would accept padding, whitespace, `+` and `/`, and stray low bits in the last character (RFC 4648 §3.5).
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined
}
