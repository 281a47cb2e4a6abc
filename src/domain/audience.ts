/** Per agent. */
export const MAX_AUDIENCES = 32

/** A StringOrURI (RFC 7519 §2): with a colon it must be a URI. */
export function isAudience(text: string): boolean {
  return /^[\x21-\x7e]{1,1024}$/.test(text) && (!text.includes(':') || URL.canParse(text))
}
