import { isDeepStrictEqual } from 'node:util'
import type { AuditTrace } from '../../domain/audit-entry.ts'
import type { StoredBackend } from '../../domain/backend.ts'
import { Problem } from '../../domain/problems.ts'
import type { Step } from '../../store/engine/change.ts'
import { traceOf } from '../audit/entry.ts'
import type { Actor, Caller } from '../caller.ts'
import type { Core } from '../context.ts'

/** A rotation that has not ended, sealed beside the configuration (ADR 0033). Times in epoch ms. */
export interface RotationRecord {
  readonly id: string
  /** `proposed`: either the configuration or `values` is valid upstream. `finishing`: the configuration is. */
  readonly stage: 'proposed' | 'finishing'
  /** By field: the new ones while they are proposed, then the old ones, which are still to be ended. */
  readonly values: Readonly<Record<string, string>>
  readonly since: number
  /** Until when a node works on it; a record of a node that was killed is free after that. */
  readonly claimedUntil: number
  /** Who began it, for the audit. */
  readonly by: RotationBy
}

interface RotationBy extends AuditTrace {
  readonly agentId: string | null
  readonly agentName: string | null
}

/** Undefined if there is none, or none that can be opened. */
export function openRotation(
  { sealer }: Pick<Core, 'sealer'>,
  { uid, sealedRotation }: Pick<StoredBackend, 'uid' | 'sealedRotation'>,
): RotationRecord | undefined {
  if (sealedRotation === null) return undefined
  try {
    return JSON.parse(sealer.open('backends', uid, 'rotation', sealedRotation)) as RotationRecord
  } catch {
    return undefined
  }
}

export function sealRotation({ sealer }: Pick<Core, 'sealer'>, uid: string, record: RotationRecord): string {
  return sealer.seal('backends', uid, 'rotation', JSON.stringify(record))
}

/** A request or a job of this node rotates the secrets of the backend alone, under this key of `serialize`. */
export const aloneKey = (uid: string) => `rotation|${uid}`

/** Whether another node may be working on it. */
export function isClaimed({ store }: Pick<Core, 'store'>, { claimedUntil }: RotationRecord): boolean {
  return store.hasOtherNodes && claimedUntil > store.now()
}

/**
 * What a change of the configuration does to a pending rotation: an entered secret replaces both the old and the new
 * value. Throws `conflict` if that could leave the store without a secret that works.
 */
export function settleByChange(
  core: Pick<Core, 'store' | 'sealer' | 'serialize'>,
  before: StoredBackend,
  old: Readonly<Record<string, unknown>> | undefined,
  config: Readonly<Record<string, unknown>> | undefined,
): Step[] {
  if (before.sealedRotation === null || config === undefined || isDeepStrictEqual(old, config)) return []
  const record = openRotation(core, before)
  if (record?.stage === 'finishing') return []
  const isEntered =
    record === undefined || Object.keys(record.values).some((field) => old?.[field] !== config[field])
  const isUnderWay =
    record !== undefined && (core.serialize.isBusy(aloneKey(before.uid)) || isClaimed(core, record))
  if (isEntered && !isUnderWay) return core.store.backends.setRotation(before, null)
  throw new Problem('conflict', {
    message:
      'The root secret of this backend is being replaced. Complete that with "mayfly backend rotate-root", or enter the secret again.',
  })
}

export function rotationBy(actor: Actor<Caller | undefined>): RotationBy {
  const { caller } = actor
  const [agentId, agentName] = caller?.kind === 'agent' ? [caller.agentId, caller.agentName] : [null, null]
  return { ...traceOf(actor), agentId, agentName }
}
