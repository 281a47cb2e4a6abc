import { MISSED_BEATS, type Run, writtenWithin } from '../../domain/run.ts'
import type { Beat } from '../../store/tables/runs.ts'
import type { Core } from '../context.ts'
import type { Runs } from '../parts.ts'

/** Runs that a node remembers. */
const MAX_KNOWN = 100_000
/** Beats in one statement. */
const BATCH = 500
/** How often runs that no longer beat here are forgotten. */
const FORGET_EVERY_MS = 60_000

interface Known {
  readonly run: Run
  /** The generation of the store at which it was read. */
  readonly generation: number
  /** Epoch ms at which it was last asked for. */
  usedAt: number
}

export function createRuns(core: Pick<Core, 'store'>): Runs {
  const all = new Map<string, Known>()
  let unwritten = new Map<string, number>()
  let writing = new Map<string, number>()
  /** Epoch ms by which the first of them must be written. */
  let writeBy = Number.POSITIVE_INFINITY
  let forgottenAt = core.store.now()
  let flushing: Promise<void> | undefined

  async function load(id: string): Promise<Run | undefined> {
    const generation = await core.store.generation()
    const run = await core.store.runs.find(id)
    // One that has ended is read again each time: nobody beats for it.
    if (run !== undefined && run.endedAt === null) {
      if (all.size >= MAX_KNOWN) all.clear()
      all.set(id, { run, generation, usedAt: core.store.now() })
    }
    return run
  }

  function forgetSilent(now: number): void {
    if (Math.abs(now - forgottenAt) < FORGET_EVERY_MS) return
    forgottenAt = now
    for (const [id, { run, usedAt }] of all)
      if (now - usedAt > (MISSED_BEATS + 1) * run.heartbeatMs) all.delete(id)
  }

  async function write(): Promise<void> {
    writing = unwritten
    unwritten = new Map()
    writeBy = Number.POSITIVE_INFINITY
    const left: Beat[] = [...writing]
    try {
      while (left.length > 0) {
        await core.store.commit([core.store.runs.beat(left.slice(0, BATCH))])
        left.splice(0, BATCH)
      }
    } catch (error) {
      // For the next look, which is soon.
      for (const [id, at] of left) if (!unwritten.has(id)) unwritten.set(id, at)
      writeBy = Number.NEGATIVE_INFINITY
      throw error
    } finally {
      writing = new Map()
    }
  }

  return {
    find(id) {
      const known = all.get(id)
      const { changedAt, now } = core.store
      if (known === undefined || known.generation < Math.max(changedAt(id), changedAt(known.run.agentId)))
        return load(id)
      known.usedAt = now()
      return known.run
    },
    beat({ id, heartbeatMs }, at) {
      unwritten.set(id, at)
      writeBy = Math.min(writeBy, at + writtenWithin(heartbeatMs))
    },
    latestBeat: (id) => unwritten.get(id) ?? writing.get(id),
    async flush(isAll = false) {
      const now = core.store.now()
      forgetSilent(now)
      if (flushing === undefined && unwritten.size > 0 && (isAll || isSoon(writeBy, now)))
        flushing = write().finally(() => {
          flushing = undefined
        })
      await flushing
    },
  }
}

/** Before the next look it would be too late. */
const LOOK_MS = 300

function isSoon(writeBy: number, now: number): boolean {
  return writeBy - now < LOOK_MS
}
