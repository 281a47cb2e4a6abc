/**
 * The bytes of unpadded base64url text, or `undefined` for anything that is not its own canonical encoding:
 * padding, whitespace, `+` and `/`, and stray low bits in the last character (RFC 4648 §3.5), all of which
 * Node's decoder would let pass. The empty text is refused too.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined
}
