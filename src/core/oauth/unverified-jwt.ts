import { isObject, parseJson } from '../../domain/formats/json.ts'
import { MAX_JWT_BYTES } from '../../domain/limits.ts'

/**
 * The unverified header (0) or claims (1) of a JWT. Use it only to choose the key or record to verify the token against.
 * Never throws.
 */
export function unverifiedPart(token: string, index: 0 | 1): Readonly<Record<string, unknown>> | undefined {
  if (token.length > MAX_JWT_BYTES) return undefined
  const parts = token.split('.')
  const part = parts[index]
  if (parts.length !== 3 || part === undefined) return undefined
  const value = parseJson(Buffer.from(part, 'base64url').toString('utf8'))
  return isObject(value) ? value : undefined
}
