import { MAX_RUN_STREAMS, MAX_RUN_STREAMS_PER_AGENT, MAX_STREAMS_PER_RUN } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import { isRunning, type Run } from '../../domain/run.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import type { FollowedRuns, Follower, RunStream } from '../parts.ts'
import { findOwnRun } from '../runs/find-run.ts'
import { createPlaces } from './places.ts'
import { createRunRound, type Followed, type RunLine } from './run-round.ts'

/** From the beginning of a round to the next, and the least pause after one: longer after one that took long, but never so long that the end of a credential is told late. */
const ROUND_MS = 200
const LEAST_PAUSE_MS = 10
const SHARE = 3

/** Joins the stream of one of the caller's runs, ended or not. Throws `not_found` and `rate_limited`. */
export async function followRun(
  core: Pick<Core, 'store' | 'runs' | 'followedRuns'>,
  { caller }: Actor<AgentCaller>,
  bearer: string | undefined,
  id: string,
  stream: RunStream,
): Promise<Follower> {
  const run = await findOwnRun(core, caller, id)
  return core.followedRuns.join({ caller, bearer }, run, stream)
}

/** See `FollowedRuns`. All streams of the node are looked after by one loop, which runs while there are any. */
export function createFollowedRuns(core: Pick<Core, 'store' | 'callers' | 'runs' | 'log'>): FollowedRuns {
  const followed = new Map<string, Followed>()
  const places = createPlaces(MAX_RUN_STREAMS_PER_AGENT, MAX_RUN_STREAMS, 'streams of runs')
  const loop = createLoop(createRunRound(core, followed), () => followed.size > 0)
  const forget = core.store.onEnd(() => followed.size > 0 && loop.wake())
  let isClosed = false

  return {
    join({ caller, bearer }, run, stream) {
      const known = followed.get(run.id)
      if ((known?.lines.size ?? 0) >= MAX_STREAMS_PER_RUN) throw tooMany()
      const giveBack = places.take(caller)
      const of: Followed = known ?? newFollowed(core, run)
      const line: RunLine = { caller, bearer, stream, told: undefined, spokenAt: 0, leave: () => leave() }
      const leave = () => {
        giveBack()
        of.lines.delete(line)
        if (of.lines.size === 0 && followed.get(run.id) === of) followed.delete(run.id)
        if (followed.size === 0) loop.wake()
      }
      if (isClosed) {
        giveBack()
        stream.end()
        return line
      }
      of.lines.add(line)
      followed.set(run.id, of)
      loop.wake()
      return line
    },
    async close() {
      isClosed = true
      forget()
      for (const { lines } of [...followed.values()])
        for (const { leave, stream } of [...lines]) {
          leave()
          stream.end()
        }
      await loop.ended()
    },
  }
}

function newFollowed({ store }: Pick<Core, 'store'>, run: Run): Followed {
  return {
    run,
    isRunning: isRunning(run, store.now()),
    lines: new Set(),
    living: undefined,
    knownAt: 0,
    version: 1,
  }
}

function tooMany(): Problem {
  return new Problem('rate_limited', {
    message: `At most ${MAX_STREAMS_PER_RUN} streams of one run may be open; close one of them.`,
    retryAfterSeconds: 5,
  })
}

/** Runs rounds while there is something to do, and starts when it is woken. */
function createLoop(round: () => Promise<void>, isNeeded: () => boolean) {
  let running: Promise<void> | undefined
  let isWoken = false
  let wakeUp = () => {}

  async function pause(ms: number, canBeWoken: boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      if (!canBeWoken) return
      wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    wakeUp = () => {}
  }

  async function run(): Promise<void> {
    while (isNeeded()) {
      isWoken = false
      const begun = performance.now()
      await round()
      const cost = performance.now() - begun
      await pause(Math.min(ROUND_MS, Math.max(LEAST_PAUSE_MS, SHARE * cost)), false)
      const left = ROUND_MS - (performance.now() - begun)
      if (!isWoken && isNeeded()) await pause(Math.max(0, left), true)
    }
  }

  function begin(): void {
    running ??= run().finally(() => {
      running = undefined
      if (isNeeded()) begin()
    })
  }

  return {
    wake(): void {
      isWoken = true
      wakeUp()
      begin()
    },
    async ended(): Promise<void> {
      await running
    },
  }
}
