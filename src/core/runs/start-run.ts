import { formatDuration, requireDuration } from '../../domain/duration.ts'
import { MAX_HEARTBEAT_MS, MAX_RUNS_PER_AGENT, MIN_HEARTBEAT_MS } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { deadAt, type Run } from '../../domain/run.ts'
import { audit } from '../audit/entry.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { commit, requireUnchanged, whileUnchanged } from '../commit.ts'
import type { Core } from '../context.ts'
import { requireNoRun } from '../require-whole.ts'
import type { RunView } from './list-runs.ts'

export interface RunCommand {
  readonly purpose?: string | undefined
  /** A duration as it was written. */
  readonly heartbeat?: string | undefined
}

/**
 * Begins a run of the caller. Throws `invalid_request`, `insufficient_scope` for the token of a run, `rate_limited` when the
 * agent has too many, and `conflict`.
 */
export async function startRun(
  core: Core,
  actor: Actor<AgentCaller>,
  { purpose, heartbeat }: RunCommand,
): Promise<RunView> {
  requireNoRun(core, actor)
  const { caller, origin } = actor
  const heartbeatMs = heartbeat === undefined ? core.settings.runsHeartbeatMs : readHeartbeat(heartbeat)
  const quota = {
    key: `runs|${caller.agentId}`,
    limit: MAX_RUNS_PER_AGENT,
    count: () => core.store.runs.countLiving(caller.agentId, MAX_RUNS_PER_AGENT),
    message: `At most ${MAX_RUNS_PER_AGENT} runs of an agent may live at once; end some.`,
  }
  return core.quotas.withPlace(quota, async () => {
    const now = core.store.now()
    const { runsMaxMs } = core.settings
    const run: Run = {
      id: core.ids.id('run'),
      agentId: caller.agentId,
      agentName: caller.agentName,
      purpose: purpose ?? null,
      heartbeatMs,
      version: 1,
      startedAt: now,
      expiresAt: runsMaxMs === undefined ? null : now + runsMaxMs,
      endedAt: null,
      reason: null,
      endedBy: null,
      lastBeat: null,
      ipAddress: origin.ipAddress,
      userAgent: origin.userAgent,
    }
    const entry = audit(core, actor, {
      action: 'run.started',
      runId: run.id,
      details: { heartbeat: formatDuration(heartbeatMs), ...(purpose === undefined ? {} : { purpose }) },
    })
    const outcome = await commit(core, actor, [
      ...whileUnchanged(actor),
      ...core.store.runs.insert(run),
      entry,
    ])
    requireUnchanged(outcome)
    if (!outcome.done) throw new Problem('conflict')
    core.meter.runStarted()
    return { ...run, isRunning: true, beatAt: now, deadAt: deadAt(heartbeatMs, now), live: 0 }
  })
}

function readHeartbeat(text: string): number {
  const ms = requireDuration(text, 'heartbeat')
  if (ms < MIN_HEARTBEAT_MS || ms > MAX_HEARTBEAT_MS)
    throw invalid(
      `"heartbeat" must be between ${formatDuration(MIN_HEARTBEAT_MS)} and ${formatDuration(MAX_HEARTBEAT_MS)}.`,
    )
  return ms
}
