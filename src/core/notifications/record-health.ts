import { backendHealthKey } from '../../domain/backend.ts'
import { audit } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import type { HealthChange } from '../parts.ts'

type Parts = Pick<Core, 'store' | 'ids' | 'log' | 'health' | 'backends'>

/** What the store knows is `up` or `down`, a space, and since when in epoch ms. */
const HEALTH = 'health|'

/**
 * Records in the audit that a backend went down or came back, once, whichever node sees it first: a change that the store knows
 * already, from another node or from before a restart, is not recorded again. What was never down does not come back.
 */
export function createHealthRecorder(core: Parts): {
  /** Records what the store has not taken yet, and what another node found down that has worked here since. */
  record(): Promise<void>
  stop(): void
} {
  /** The latest change of each backend that the store does not know yet. */
  const left = new Map<string, HealthChange>()

  async function write(change: HealthChange): Promise<void> {
    const { uid } = change.backend
    if ((await recordChange(core, change)) && left.get(uid) === change) left.delete(uid)
  }

  const off = core.health.onChange((change) => {
    left.set(change.backend.uid, change)
    write(change).catch((error: unknown) => {
      core.log.debug({ err: error }, 'the health of a backend could not be recorded yet')
    })
  })

  return {
    async record() {
      for (const change of left.values()) await write(change)
      const { byUid } = await core.backends.at(await core.store.generation())
      for (const { key, value } of await core.store.meta.list(HEALTH)) {
        const [state, since] = value.split(' ')
        const backend = byUid.get(key.slice(HEALTH.length))
        if (state !== 'down' || backend === undefined) continue
        const { state: here, lastSuccess: at = 0 } = core.health.of(backend)
        if (here === 'up' && at > Number(since))
          await recordChange(core, { backend, from: 'down', to: 'up', reason: undefined, at })
      }
    },
    stop: off,
  }
}

/** Whether the store knows it now; not so where another node was faster with this change or another. */
async function recordChange(
  core: Pick<Core, 'store' | 'ids'>,
  { backend, to, reason, at }: HealthChange,
): Promise<boolean> {
  const { meta, commit } = core.store
  const key = backendHealthKey(backend.uid)
  const known = await meta.get(key)
  if (known?.startsWith(to) === true || (known === undefined && to === 'up')) return true
  const entry = audit(core, SYSTEM, {
    action: to === 'up' ? 'backend.up' : 'backend.down',
    outcome: to === 'up' ? 'ok' : 'failed',
    backend: backend.name,
    ...(reason === undefined ? {} : { details: { reason } }),
  })
  const value = `${to} ${at}`
  const step = known === undefined ? meta.add(key, value) : meta.replace(key, known, value)
  return (await commit([step, entry])).done
}
