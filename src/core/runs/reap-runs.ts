import { deadAt, writtenWithin } from '../../domain/run.ts'
import type { DueRun } from '../../store/tables/runs.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import { endRuns } from './end-run.ts'

type Parts = Pick<Core, 'store' | 'runs' | 'answering' | 'meter'>

/** Runs that are read at once. */
const BATCH = 1_000

/**
 * Ends runs that are past the end that the server sets, and those that missed three heartbeats. Returns whether there may be
 * more at once.
 */
export async function reapRuns(core: Parts): Promise<boolean> {
  const { runs, now } = core.store
  const expired = await runs.expired(now(), BATCH)
  if (expired.length > 0) await endRuns(core, SYSTEM, expired, 'expired')
  await core.answering.look()
  const found = await runs.due(now(), BATCH)
  const ended = found.filter((run) => run.ended === 'run').map(({ id }) => id)
  const silent = found.filter((run) => run.ended !== 'run' && core.runs.latestBeat(run.id) === undefined)
  const dead = silent.filter((run) => mayEnd(core, run)).map(({ id }) => id)
  const spared = silent.filter((run) => !mayEnd(core, run)).map((run) => later(core, run))
  const change = [
    ...(ended.length > 0 ? [runs.dropBeats(ended)] : []),
    ...(spared.length > 0 ? [runs.lookAgain(spared, now())] : []),
  ]
  if (change.length > 0) await core.store.commit(change)
  if (dead.length > 0) await endRuns(core, SYSTEM, dead, 'missed_heartbeat')
  return expired.length + dead.length > 0
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
