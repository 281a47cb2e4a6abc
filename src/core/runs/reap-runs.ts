import { deadAt, type RunEndReason, writtenWithin } from '../../domain/run.ts'
import type { DueRun } from '../../store/tables/runs.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endRuns } from './end-run.ts'

type Parts = Pick<Core, 'store' | 'runs' | 'answering' | 'meter'>

/** Runs that are read at once. */
const BATCH = 1_000

/**
 * Ends runs that are past the end that the server sets, and those that missed three heartbeats. Returns whether there may be
 * more at once: not when all that are left were refused, which the next look reads again.
 */
export async function reapRuns(core: Parts): Promise<boolean> {
  const { runs, now } = core.store
  const expired = await runs.expired(now(), BATCH)
  const ofExpired = await endAll(core, expired, 'expired', () => true)
  await core.answering.look()
  const found = await runs.due(now(), BATCH)
  const ended = found.filter((run) => run.ended === 'run').map(({ id }) => id)
  const silent = found.filter((run) => run.ended !== 'run' && core.runs.latestBeat(run.id) === undefined)
  const dead = new Map(silent.filter((run) => mayEnd(core, run)).map((run) => [run.id, run]))
  const spared = silent.filter(({ id }) => !dead.has(id)).map((run) => later(core, run))
  const change = [
    ...(ended.length > 0 ? [runs.dropBeats(ended)] : []),
    ...(spared.length > 0 ? [runs.lookAgain(spared, now())] : []),
  ]
  if (change.length > 0) await core.store.commit(change)
  // Ending many takes time, in which this node may have been frozen: each is looked at again before its turn.
  const mayStill = (id: string) => {
    const run = dead.get(id)
    return run !== undefined && core.runs.latestBeat(id) === undefined && mayEnd(core, run)
  }
  const ofDead = await endAll(core, [...dead.keys()], 'missed_heartbeat', mayStill)
  return (ofExpired > 0 && expired.length === BATCH) || (ofDead > 0 && found.length === BATCH)
}

/** Ends these in slices, and returns how many it ended. Those of a refused slice end one by one: one of them holds up no other. */
async function endAll(
  core: Pick<Core, 'meter' | 'store'>,
  ids: readonly string[],
  reason: RunEndReason,
  mayStill: (id: string) => boolean,
): Promise<number> {
  let [left, count] = [ids, 0]
  while (left.length > 0) {
    const ready = left.filter(mayStill)
    const done = ready.length === 0 ? 0 : await endRuns(core, SYSTEM, ready, reason)
    count += done
    left = ready.slice(done)
    if (done > 0) continue
    for (const id of left.slice(0, core.store.endSlice))
      if (mayStill(id)) count += await endRuns(core, SYSTEM, [id], reason)
    left = left.slice(core.store.endSlice)
  }
  return count
}

/**
 * It has had one interval to beat while this node answered without a gap, and all nodes the time to write a beat that they
 * had: only a run that has been looked at before ends (ADR 0068).
 */
function mayEnd({ store, answering }: Parts, { heartbeatMs, beatAt, dueAt, ended }: DueRun): boolean {
  if (ended !== undefined || dueAt <= deadAt(heartbeatMs, beatAt)) return false
  return answering.since(heartbeatMs) + heartbeatMs <= store.now()
}

function later({ store, answering }: Parts, { id, heartbeatMs }: DueRun): readonly [id: string, at: number] {
  const now = store.now()
  const since = answering.since(heartbeatMs)
  const hadItsChance = Number.isFinite(since) ? Math.max(now, since + heartbeatMs) : now + heartbeatMs
  return [id, Math.ceil(hadItsChance + writtenWithin(heartbeatMs))]
}
