import type { RunEndReason } from '../../domain/run.ts'
import type { Step } from '../../store/engine/change.ts'
import { traceOf } from '../audit/entry.ts'
import { type Actor, type Caller, SYSTEM } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'

/**
 * Ends the first of these runs, as many as one commit may end with their credentials, and returns how many that is; 0 if one
 * of them has ended meanwhile. The credentials of a run with very many end in the same commit for every reader, and
 * `finishRuns` writes their rows and entries in slices (ADR 0023). `after` are steps of the same commit that follow.
 */
export async function endRuns(
  core: Pick<Core, 'store' | 'meter'>,
  actor: Actor<Caller | undefined>,
  ids: readonly string[],
  reason: RunEndReason,
  after: readonly Step[] = [],
): Promise<number> {
  const { few, change } = await planEnds(core, actor, ids, reason)
  const { done } = await commit(core, actor, [...change, ...after], { urgent: true })
  if (!done) return 0
  core.meter.runEnded(reason, few.length)
  return few.length
}

/** The steps that end one run, as part of another act; refused when it has ended. */
export async function runEndSteps(
  core: Pick<Core, 'store'>,
  actor: Actor<Caller | undefined>,
  id: string,
  reason: RunEndReason,
): Promise<Step[]> {
  return (await planEnds(core, actor, [id], reason)).change
}

async function planEnds(
  core: Pick<Core, 'store'>,
  actor: Actor<Caller | undefined>,
  ids: readonly string[],
  reason: RunEndReason,
): Promise<{ few: string[]; change: Step[] }> {
  const { runs, credentials, endSlice, now: clock } = core.store
  // Each takes one row at least.
  const first = ids.slice(0, endSlice)
  const counts = await credentials.countLivingOfRuns(first)
  const now = clock()
  const by = traceOf(actor)
  const { few, hasMany } = firstOf(first, counts, endSlice)
  const ending = { reason, endedAt: now, now, by }
  const one = few[0]
  const change: Step[] = [
    ...runs.endRuns(few, ending),
    ...(hasMany && one !== undefined
      ? [runs.beginEnd({ runId: one, endedAt: now, by })]
      : credentials.endAll({ runIds: few }, 'run_ended', now, by)),
  ]
  return { few, change }
}

/** The runs that fit into one commit, with their credentials. A run with too many is alone. */
function firstOf(ids: readonly string[], counts: ReadonlyMap<string, number>, limit: number) {
  const few: string[] = []
  let rows = 0
  for (const id of ids) {
    const own = 1 + (counts.get(id) ?? 0)
    if (few.length === 0 && own > limit + 1) return { few: [id], hasMany: true }
    if (few.length > 0 && rows + own > limit) break
    few.push(id)
    rows += own
  }
  return { few, hasMany: false }
}

/** Ends the credentials of runs that ended with very many of them, slice by slice, each with its entry. */
export async function finishRuns(core: Pick<Core, 'store'>, signal: AbortSignal): Promise<void> {
  const { runs, credentials, endSlice, now } = core.store
  for (const { runId, endedAt, by } of await runs.unfinishedEnds(endSlice)) {
    while (!signal.aborted) {
      const ids = await credentials.leftOf({ runId }, endedAt, endSlice)
      const isLast = ids.length < endSlice
      const change = [
        ...(ids.length === 0
          ? []
          : credentials.endLate(ids, { reason: 'run_ended', endedAt, now: now(), by })),
        ...(isLast ? [runs.finishEnd(runId)] : []),
      ]
      const { done } = await commit(core, SYSTEM, change, { urgent: true, bulk: true })
      // Refused if something else ended one of them in the meantime, perhaps another node: look again.
      if (done && isLast) break
    }
  }
}
