import { createHash } from 'node:crypto'

/** The fingerprint by which Ceph's gateway knows an OpenID provider: that of the certificate in its key set. */
export async function thumbprintOf(issuer: string): Promise<string> {
  const reply = await fetch(`${issuer}/.well-known/jwks.json`)
  const { keys } = (await reply.json()) as { keys: { x5c: string[] }[] }
  const certificate = Buffer.from(keys[0]?.x5c[0] ?? '', 'base64')
  return createHash('sha1').update(certificate).digest('hex').toUpperCase()
}
