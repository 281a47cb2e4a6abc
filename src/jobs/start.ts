import { finishEnds } from '../core/agents/finish-ends.ts'
import { reapAgents } from '../core/agents/reap-agents.ts'
import { countActivity } from '../core/audit/count-activity.ts'
import { keepUpBackends } from '../core/backends/keep-up.ts'
import { resumeRotations } from '../core/backends/rotate-root.ts'
import type { Core } from '../core/context.ts'
import { expireEnrollments } from '../core/enrollments/expire-enrollments.ts'
import { createTrustWatch } from '../core/identities/watch-trust.ts'
import { createHealthRecorder } from '../core/notifications/record-health.ts'
import { createAgeWatch, type ServerCertificate } from '../core/notifications/watch-ages.ts'
import { finishRuns } from '../core/runs/end-run.ts'
import { reapRuns } from '../core/runs/reap-runs.ts'
import { expireSessions } from '../core/sessions/end-session.ts'
import { startLoop } from './loop.ts'
import { createPrune } from './prune.ts'
import { createReconcile } from './reconcile.ts'
import { createRewrap } from './rewrap.ts'
import { createSweeper } from './sweep.ts'
import { tidy } from './tidy.ts'

export interface Jobs {
  /** Resolves when no job is running. */
  stop(): Promise<void>
}

/** Pauses between runs, in ms. */
const SWEEP_MS = 500
const REAP_MS = 1_000
const FLUSH_MS = 5_000
/** Often enough for runs that beat once a second. */
const BEATS_MS = 250
const RUNS_MS = 500
const TIDY_MS = 30_000
const KEEP_UP_MS = 60_000
const NOTIFY_MS = 1_000

export interface JobOptions {
  readonly retentionMs: number
  /** Tells the other nodes what this one is. */
  announce(): Promise<void>
  /** The certificate that the server shows now. */
  certificate(): ServerCertificate | undefined
}

export function startJobs(core: Core, options: JobOptions): Jobs {
  const ages = createAgeWatch(core)
  const health = createHealthRecorder(core)
  const sweeper = createSweeper(core)
  const reconcile = createReconcile(core)
  const claimsVoided = voidClaims(core)
  const loops = [
    startLoop('sweep', SWEEP_MS, core.log, async (signal) => {
      await claimsVoided
      await sweeper.sweep(signal)
      return false
    }),
    startLoop('reap', REAP_MS, core.log, async (signal) => {
      await reapAgents(core, signal)
      await expireEnrollments(core, core.store.now())
      return false
    }),
    startLoop('finish', REAP_MS, core.log, async (signal) => {
      await finishEnds(core, signal)
      await finishRuns(core, signal)
      return false
    }),
    startLoop('flush', FLUSH_MS, core.log, async () => {
      await core.lastUse.flush()
      await core.revocations.flush()
      await core.denials.flush(core.store.now())
      await core.localReads.flush(core.store.now())
      return false
    }),
    ...startEnds(core),
    startLoop('rewrap', TIDY_MS, core.log, createRewrap(core)),
    startLoop('keep up', KEEP_UP_MS, core.log, async () => {
      await keepUpBackends(core)
      return false
    }),
    startLoop('rotate', KEEP_UP_MS, core.log, async () => {
      await resumeRotations(core)
      return false
    }),
    startLoop('reconcile', KEEP_UP_MS, core.log, async (signal) => {
      await reconcile(signal)
      return false
    }),
    startLoop('announce', TIDY_MS, core.log, async () => {
      await options.announce()
      return false
    }),
    startLoop('notify', NOTIFY_MS, core.log, async () => {
      void core.notifier.tellDue()
      return false
    }),
    startLoop('ages', KEEP_UP_MS, core.log, async () => {
      await ages.look(options.certificate())
      return false
    }),
    startLoop('health', FLUSH_MS, core.log, async () => {
      await health.record()
      return false
    }),
    startLoop('activity', FLUSH_MS, core.log, () => countActivity(core)),
    startLoop('sessions', TIDY_MS, core.log, () => expireSessions(core)),
    startLoop('tidy', TIDY_MS, core.log, () => tidy(core)),
    ...(options.retentionMs > 0
      ? [startLoop('prune', TIDY_MS, core.log, createPrune(core, options.retentionMs))]
      : []),
  ]
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
      await sweeper.idle()
      await core.notifier.stop()
      health.stop()
    },
  }
}

/** The beats of runs and the end of those that are dead, and the end of agents whose entry no node has. */
function startEnds(core: Core) {
  const trust = createTrustWatch(core)
  return [
    startLoop('beats', BEATS_MS, core.log, async () => {
      await core.answering.look()
      await core.runs.flush()
      return false
    }),
    startLoop('runs', RUNS_MS, core.log, () => reapRuns(core)),
    startLoop('trust', FLUSH_MS, core.log, async (signal) => {
      await trust.look(signal)
      return false
    }),
  ]
}

/** SQLite serves one process, so claims of an earlier process are void. On PostgreSQL they expire by themselves. */
async function voidClaims(core: Pick<Core, 'store' | 'log'>): Promise<void> {
  if (core.store.hasOtherNodes) return
  const step = core.store.credentials.voidClaims(core.store.now())
  await core.store.commit([step], { urgent: true }).catch((error: unknown) => {
    core.log.warn({ err: error }, 'claims of the last process could not be voided; they expire by themselves')
  })
}
