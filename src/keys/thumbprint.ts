import { hash } from 'node:crypto'
import { requiredMembers } from '../domain/formats/jwk.ts'

/** RFC 7638: SHA-256 over the required members, 43 base64url characters. Throws `Error` for another key type. */
export function thumbprint(jwk: Readonly<Record<string, unknown>>): string {
  return hash('sha256', JSON.stringify(requiredMembers(jwk)), 'base64url')
}
