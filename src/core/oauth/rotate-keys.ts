import { requireLifetime } from '../../domain/duration.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor } from '../caller.ts'
import { commitOrConflict, whileUnchanged } from '../commit.ts'
import { requireConfirmed } from '../confirm.ts'
import type { Core } from '../context.ts'
import { newIssuerKey } from './issuer-keys.ts'

export interface RotatedKeys {
  readonly kid: string
  /** Epoch ms until which tokens of the old key stay valid; null when they ended with the rotation. */
  readonly previousUntil: number | null
}

/**
 * Replaces the key that signs, in one commit that every node notices. Without `grace` all issued tokens are invalid at
 * once; with it the old keys verify that long at most. Throws `invalid_request`, `confirmation_required`,
 * `store_unavailable`.
 */
export async function rotateKeys(
  core: Pick<Core, 'store' | 'ids' | 'sealer' | 'settings' | 'rates'>,
  actor: Actor,
  command: { readonly grace?: string | undefined },
): Promise<RotatedKeys> {
  const graceMs = command.grace === undefined ? undefined : requireLifetime(command.grace, 'grace')
  await requireConfirmed(core, actor)
  const made = await newIssuerKey(core)
  const previousUntil = graceMs === undefined ? null : core.store.now() + graceMs
  const change: Step[] = [
    ...whileUnchanged(actor),
    core.store.tokens.holdIssuerKeys(),
    { op: 'invalidate', topic: 'keys' },
    core.store.tokens.retireIssuerKeys(previousUntil ?? undefined),
    made.step,
    audit(core, actor, {
      action: 'keys.rotated',
      details: { kid: made.kid, grace_ms: graceMs },
    }),
  ]
  const message = 'The keys were rotated at the same time; try again.'
  await commitOrConflict(core, actor, change, message, { urgent: true })
  return { kid: made.kid, previousUntil }
}
