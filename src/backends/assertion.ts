import type { KeyObject, webcrypto } from 'node:crypto'
import { misconfigured } from '../domain/backend-error.ts'

/** A signed JWT that proves Mayfly's identity to an upstream. Throws `BackendError` if the key cannot sign with the algorithm. */
export async function signAssertion(
  key: KeyObject | webcrypto.CryptoKey,
  header: { readonly alg: string; readonly [member: string]: unknown },
  claims: Readonly<Record<string, unknown>>,
): Promise<string> {
  const { SignJWT } = await import('jose')
  const { alg, ...members } = header
  try {
    return await new SignJWT({ ...claims }).setProtectedHeader({ alg, typ: 'JWT', ...members }).sign(key)
  } catch (cause) {
    throw misconfigured(`The private key cannot sign with ${alg}.`, { cause })
  }
}
