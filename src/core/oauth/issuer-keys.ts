import type { PublicJwk } from '../../keys/jwt-keys.ts'
import type { Step } from '../../store/engine/change.ts'
import type { Core } from '../context.ts'
import type { IssuerKeys } from '../parts.ts'
import { createSnapshot } from '../snapshot.ts'

type Parts = Pick<Core, 'store' | 'sealer' | 'keys' | 'settings'>

export function createIssuerKeys(core: Parts): IssuerKeys {
  return createSnapshot(async () => {
    const rows = await core.store.tokens.issuerKeys(core.store.now())
    const signing = rows.find((row) => row.retires_at === null && row.private_key !== null)
    if (signing === undefined || signing.private_key === null)
      throw new Error('the store holds no issuer key that signs')
    const verifying = rows.map((row) => ({
      kid: row.kid,
      publicJwk: JSON.parse(row.public_jwk) as PublicJwk,
      retiresAt: row.retires_at,
    }))
    const opened = core.sealer.open('issuer_keys', signing.kid, 'private_key', signing.private_key)
    const revoked = await core.store.tokens.revokedAfter(core.store.now())
    return {
      signing: core.keys.loadSigningKey(opened, JSON.parse(signing.public_jwk) as PublicJwk),
      verifying,
      revoked: new Map(revoked.map((one) => [one.jti, one.expires_at])),
    }
  })
}

/** A fresh key as a step. */
export async function newIssuerKey(core: Parts): Promise<{ kid: string; step: Step }> {
  const now = core.store.now()
  const made = await core.keys.generateIssuerKey(core.settings.issuer, now)
  const row = {
    kid: made.kid,
    public_jwk: JSON.stringify(made.publicJwk),
    private_key: core.sealer.seal('issuer_keys', made.kid, 'private_key', made.privateKey),
    created_at: now,
    retires_at: null,
  }
  return { kid: made.kid, step: { op: 'insert', table: 'issuer_keys', row } }
}
