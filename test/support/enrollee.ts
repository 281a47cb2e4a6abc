import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { compactDecrypt, type JWK, SignJWT } from 'jose'

export interface Answer {
  token: string
  oidc: { client_id: string; client_secret: string }
  scopes: string[]
  agent_id: string
  signing_key_id: string
  signing_email: string
}

const jwkOf = (key: KeyObject): JWK => key.export({ format: 'jwk' }) as JWK

/** The client side of an enrollment: its key, its proofs, and the decryption of its answer. */
export function newEnrollee(curve: 'Ed25519' | 'P-256' = 'Ed25519', issuer = 'https://mayfly.test') {
  const pair =
    curve === 'Ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const newBox = () =>
    curve === 'Ed25519' ? generateKeyPairSync('x25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const alg = curve === 'Ed25519' ? 'EdDSA' : 'ES256'
  const boxes = new Map<string, KeyObject>()
  return {
    publicKey: jwkOf(pair.publicKey) as Record<string, unknown>,
    privateKey: pair.privateKey,
    /** A fresh proof; `change` replaces claims, `header` members of the header, `key` the signing key. */
    prove: async (
      id: string,
      now: number,
      {
        change = {},
        header = {},
        key = pair.privateKey,
      }: {
        change?: Record<string, unknown>
        header?: Record<string, unknown>
        key?: KeyObject | Uint8Array
      } = {},
    ): Promise<string> => {
      const box = newBox()
      const enc = jwkOf(box.publicKey)
      boxes.set(String(enc.x), box.privateKey)
      const claims = { aud: issuer, enr: id, iat: Math.floor(now / 1_000), jti: randomUUID(), enc, ...change }
      return new SignJWT(claims).setProtectedHeader({ alg, ...header }).sign(key)
    },
    /** Decrypts an answer sealed to the key of this proof. Throws for any other. */
    open: async (sealed: string, proof: string): Promise<Answer> => {
      const claims = JSON.parse(Buffer.from(proof.split('.')[1] ?? '', 'base64url').toString())
      const key = boxes.get(String(claims.enc.x))
      if (key === undefined) throw new Error('not a proof of this enrollee')
      const { plaintext } = await compactDecrypt(sealed, key, {
        keyManagementAlgorithms: ['ECDH-ES'],
        contentEncryptionAlgorithms: ['A256GCM'],
      })
      return JSON.parse(Buffer.from(plaintext).toString()) as Answer
    },
  }
}
