import { nameKey } from '../../domain/agent.ts'
import { isId } from '../../domain/ids.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import {
  isRefused,
  MAX_LINES_OF_RUN,
  MAX_MISUSED_OF_BATCH,
  type RunRequest,
  TOLD_AFTER_MS,
} from '../../domain/run-request.ts'
import type { Step } from '../../store/engine/change.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'
import { takeOrRefuse } from '../rates.ts'
import { findOwnRun } from './find-run.ts'

export interface RequestBatch {
  /** Made by whoever sends it. */
  readonly batch: string
  readonly requests: readonly RunRequest[]
}

/** Batches of one agent: twenty a second, and twice as many at once. */
const BATCHES = { count: 40, perMs: 2_000 }
/** Entries of the audit about misused placeholders, of one agent; more of them are one entry a minute with their number. */
const MISUSED = { count: 100, perMs: 60_000 }

/**
 * Records what a proxy did for a run of the caller. A batch that is sent again is recorded once. Throws `not_found`, `gone` for a run
 * that ended more than a minute ago, `rate_limited`, `audit_unavailable` and `unauthorized`.
 */
export async function recordRequests(
  core: Core,
  actor: Actor<AgentCaller>,
  runId: string,
  { batch, requests }: RequestBatch,
): Promise<void> {
  const { caller } = actor
  const run = await findOwnRun(core, caller, runId)
  const now = core.store.now()
  const endedAt = run.endedAt ?? run.expiresAt ?? Number.POSITIVE_INFINITY
  if (now - endedAt > TOLD_AFTER_MS)
    throw new Problem('gone', { message: 'This run ended more than a minute ago.' })
  const message = 'Too many batches of requests at once; put more requests into one.'
  takeOrRefuse(core.rates, `run-requests|${caller.agentId}`, BATCHES, now, message)
  const { runRequests } = core.store
  const known = (await runRequests.counts([runId])).get(runId)
  const kept = requests.slice(0, Math.max(0, MAX_LINES_OF_RUN - (known?.kept ?? 0)))
  const counts = {
    total: requests.length,
    kept: kept.length,
    refused: requests.filter(isRefused).length,
    redacted: requests.reduce((sum, { redacted }) => sum + redacted, 0),
  }
  if (!Number.isSafeInteger(counts.redacted + (known?.redacted ?? 0)))
    throw invalid('"redacted" is larger than any count of this run can be.')
  const change = [
    ...runRequests.add({ runId, id: core.ids.body(), batch, at: now, kept, counts }),
    ...(await misuses(core, actor, runId, requests)),
  ]
  const outcome = await commit(core, actor, change, { code: 'audit_unavailable' })
  if (outcome.done || outcome.reason === 'unique') return
  throw new Problem('conflict', { message: 'The run was changed meanwhile; send the batch again.' })
}

/** The entries about placeholders that stood where they must not, as steps; what is too much goes into the summary. */
async function misuses(
  core: Core,
  actor: Actor<AgentCaller>,
  runId: string,
  requests: readonly RunRequest[],
): Promise<Step[]> {
  const misused = requests.filter(({ decision }) => decision === 'misused').slice(0, MAX_MISUSED_OF_BATCH)
  if (misused.length === 0) return []
  const { caller } = actor
  const ids = misused.flatMap(({ credentialId }) =>
    credentialId !== null && isId('credential', credentialId) ? [credentialId] : [],
  )
  const own = new Set(await core.store.credentials.amongRun(runId, ids))
  const { byName } = await core.backends.at(caller.generation)
  const now = core.store.now()
  return misused.flatMap((one) => {
    const entry: Entry = {
      action: 'placeholder.misused',
      outcome: 'denied',
      runId,
      // What a proxy says is what the agent says: names and ids that are not its own would end up with others.
      backend: byName.get(nameKey(one.backend ?? ''))?.name,
      credentialId: one.credentialId !== null && own.has(one.credentialId) ? one.credentialId : undefined,
      details: { authority: one.authority, placeholder: one.placeholder, method: one.method },
    }
    if (core.rates.take(`misused|${caller.agentId}`, MISUSED, now) === 0) return audit(core, actor, entry)
    core.denials.record(actor, { ...entry, outcome: 'denied', details: { summarised: true } })
    return []
  })
}
