import type { Core } from '../context.ts'
import type { Answering } from '../parts.ts'

/** Longer without a look is a gap, in ms. */
const GAP_MS = 1_000
const ALWAYS = Number.POSITIVE_INFINITY

/** A time when this node did not answer: it had not started, was frozen, or had no store that it could write. */
interface Gap {
  /** Epoch ms. */
  readonly to: number
  readonly ms: number
}

/**
 * A frozen process looks at nothing, a frozen machine finds that the time has jumped, and a store that is away keeps a look from
 * succeeding: each is a time between two looks that is too long.
 */
export function createAnswering(
  core: Pick<Core, 'store'>,
  monotonic: () => number = () => performance.now(),
): Answering {
  /** Each ended later than the one before, and was shorter. The first is the time before the start. */
  let gaps: readonly Gap[] = []
  let last = { at: -ALWAYS, ticks: -ALWAYS }

  function record(gap: Gap): void {
    const before = gaps.at(-1)
    const between = before === undefined ? ALWAYS : gap.to - gap.ms - before.to
    // Where the answers in between were too short for anybody, it is one gap.
    const isOne = before !== undefined && between < Math.min(before.ms, gap.ms)
    const whole = isOne ? { to: gap.to, ms: before.ms + between + gap.ms } : gap
    const others = isOne ? gaps.slice(0, -1) : gaps
    gaps = [...others.filter(({ ms }) => ms > whole.ms), whole]
  }

  return {
    async look() {
      try {
        await core.store.generation()
      } catch {
        return
      }
      if (core.store.trouble() !== undefined) return
      const now = { at: core.store.now(), ticks: monotonic() }
      const ms = Math.max(now.at - last.at, now.ticks - last.ticks)
      if (ms > GAP_MS) record({ to: now.at, ms })
      last = now
    },
    since(heartbeatMs) {
      const silent = Math.max(core.store.now() - last.at, monotonic() - last.ticks)
      if (silent > GAP_MS) return ALWAYS
      // A shorter one can have kept a run from no more than one of its beats.
      return gaps.findLast(({ ms }) => ms >= heartbeatMs / 2)?.to ?? ALWAYS
    },
  }
}
