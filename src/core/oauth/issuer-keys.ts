import { generateIssuerKey, loadSigningKey } from '../../keys/jwt-keys.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Core } from '../context.ts'
import type { IssuerKeys } from '../parts.ts'
import { createSnapshot } from '../snapshot.ts'

type Parts = Pick<Core, 'store' | 'sealer' | 'settings'>

export function createIssuerKeys(core: Parts): IssuerKeys {
  const load = async () => {
    const verifying = await core.store.tokens.issuerKeys(core.store.now())
    const signing = verifying.find((key) => key.retiresAt === null && key.sealedPrivateKey !== null)
    if (signing === undefined || signing.sealedPrivateKey === null)
      throw new Error('the store holds no issuer key that signs')
    const { kid, publicJwk, sealedPrivateKey } = signing
    const privateKey = core.sealer.open('issuer_keys', kid, 'private_key', sealedPrivateKey)
    return {
      signing: loadSigningKey(privateKey, publicJwk),
      verifying,
    }
  }
  return createSnapshot(load, () => core.store.changedAt('keys'))
}

/** A new key that signs, as a step. */
export async function newIssuerKey(
  core: Parts,
  generate = generateIssuerKey,
): Promise<{ kid: string; step: Step }> {
  const now = core.store.now()
  const made = await generate(core.settings.issuer, now)
  const step = core.store.tokens.insertIssuerKey({
    kid: made.kid,
    publicJwk: made.publicJwk,
    sealedPrivateKey: core.sealer.seal('issuer_keys', made.kid, 'private_key', made.privateKey),
    createdAt: now,
    retiresAt: null,
  })
  return { kid: made.kid, step }
}
