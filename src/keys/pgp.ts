import { hash } from 'node:crypto'
import { requireName } from '../domain/agent.ts'
import { MINUTE_MS } from '../domain/limits.ts'
import { invalid } from '../domain/problems.ts'

export interface AgentPgpKey {
  /** The long key id: 16 upper-case hex characters, as git and gpg use it for `user.signingkey`. */
  readonly keyId: string
  /** 40 upper-case hex characters. */
  readonly fingerprint: string
  /** ASCII armor. */
  readonly publicKey: string
  /** ASCII armor, without a passphrase. */
  readonly privateKey: string
}

const EMAIL =
  /^[A-Za-z0-9._+-]{1,128}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/
const MAX_EMAIL_LENGTH = 254
/** GnuPG refuses keys and signatures from the future; a verifier's clock may be this far behind ours. */
const BACKDATED_MS = MINUTE_MS

/**
 * Generates an OpenPGP v4 key that only signs and certifies: Ed25519 in the legacy encoding (RFC 9580 §9.2.1), the
 * only one that GnuPG 2.2 imports. `now` is epoch ms. Throws `Problem` for an invalid agent name or an email address
 * that could break out of a user id: the library does not check them.
 */
export async function generateAgentPgpKey(agent: {
  readonly name: string
  readonly email: string
  readonly now: number
}): Promise<AgentPgpKey> {
  requireName(agent.name)
  if (agent.email.length > MAX_EMAIL_LENGTH || !EMAIL.test(agent.email)) {
    throw invalid('The signing e-mail is not a plain address of at most 254 characters.')
  }
  const { generateKey } = await import('openpgp')
  const { privateKey, publicKey } = await generateKey({
    type: 'ecc',
    curve: 'ed25519Legacy',
    userIDs: [{ name: agent.name, email: agent.email }],
    subkeys: [],
    date: new Date(agent.now - BACKDATED_MS),
    format: 'object',
  })
  return {
    keyId: publicKey.getKeyID().toHex().toUpperCase(),
    fingerprint: publicKey.getFingerprint().toUpperCase(),
    publicKey: publicKey.armor(),
    privateKey: privateKey.armor(),
  }
}

export interface PgpSignature {
  /** ASCII armor. */
  readonly signature: string
  readonly fingerprint: string
  /** Epoch ms, whole seconds. */
  readonly createdAt: number
  /** Of the signed bytes, hex. */
  readonly sha256: string
}

/** Makes a detached signature over the bytes unchanged (type 0x00), never older than its key. `now` is epoch ms. */
export async function signWithPgpKey(wish: {
  /** ASCII armor, without a passphrase. */
  readonly privateKey: string
  readonly bytes: Uint8Array
  readonly now: number
}): Promise<PgpSignature> {
  const { createMessage, readPrivateKey, sign } = await import('openpgp')
  const key = await readPrivateKey({ armoredKey: wish.privateKey })
  const second = Math.floor((wish.now - BACKDATED_MS) / 1_000) * 1_000
  const createdAt = Math.max(second, key.getCreationTime().getTime())
  const signature = await sign({
    message: await createMessage({ binary: wish.bytes }),
    signingKeys: key,
    detached: true,
    format: 'armored',
    date: new Date(createdAt),
  })
  return {
    signature,
    fingerprint: key.getFingerprint().toUpperCase(),
    createdAt,
    sha256: hash('sha256', wish.bytes, 'hex'),
  }
}
