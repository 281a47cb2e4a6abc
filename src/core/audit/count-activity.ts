import { lowestBodyAt, timeOfBody } from '../../domain/ids.ts'
import type { Core } from '../context.ts'

/** Entries in one commit. */
const PAGE = 2_000
/** A node that finds the position so near to the horizon leaves the counting to the one that moved it. */
const RECENT_MS = 4_000

/**
 * Counts entries of the audit that are not counted yet, and returns whether there are more. The counts and the position are one
 * change, and the position moves only from where it was read: however many nodes count, and wherever one is killed, each
 * entry counts once. The position follows the horizon (`store/tables/audit/horizon.ts`).
 */
export async function countActivity(core: Pick<Core, 'store'>): Promise<boolean> {
  const { activity, audit, commit } = core.store
  const from = await activity.position()
  const horizon = await audit.horizon()
  const isRecent = from !== undefined && from > lowestBodyAt(timeOfBody(horizon) - RECENT_MS)
  if (isRecent && core.store.hasOtherNodes) return false
  const entries = await activity.uncounted(from ?? '', horizon, PAGE)
  const last = entries.at(-1)
  if (last === undefined) return false
  const isFull = entries.length === PAGE
  const outcome = await commit(activity.count(entries, from, isFull ? last.id : horizon), { bulk: true })
  return outcome.done && isFull
}

/** How far the audit is counted. */
export interface Counted {
  /** Epoch ms: all entries before then are counted. */
  readonly until: number
  /** Body of an audit id: all entries up to it are counted, and none after it. */
  readonly position: string
}

/** Costs nothing where nothing happens: a position that no entry follows is as good as the horizon. */
export async function readCounted({ store }: Pick<Core, 'store'>): Promise<Counted> {
  const horizon = await store.audit.horizon()
  const position = (await store.activity.position()) ?? ''
  const [next] = position < horizon ? await store.activity.uncounted(position, horizon, 1) : []
  return { position, until: timeOfBody(next === undefined && position < horizon ? horizon : position) }
}
