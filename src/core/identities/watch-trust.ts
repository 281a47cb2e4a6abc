import { entriesOf, keyOfEntry } from '../../domain/identity/identity.ts'
import { MINUTE_MS } from '../../domain/limits.ts'
import type { Trust } from '../../store/tables/trusts.ts'
import { endAgent } from '../agents/end-agent.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'

/** How long an entry may be absent from the configuration of every node that is up, before its agents end. */
const ABSENT_MS = MINUTE_MS / 2
/** A longer time between two looks counts for nothing: this node, or its store, was away. */
const GAP_MS = MINUTE_MS / 4
/** Agents that are read at once. */
const BATCH = 100

/** What this node has seen of an entry that it does not have itself. */
interface Absence {
  readonly trustedAt: number
  /** How long this node has looked, and found that nobody had it; ms. */
  readonly ms: number
}

type Parts = Pick<Core, 'store' | 'ids' | 'log' | 'identities'>

/**
 * Each node says which entries it has, and ends the agents of one that no node has had for 30 s in which this one was up: a
 * restart, or all nodes being down, ends nothing. Call `look` every few seconds. `monotonic` is in ms.
 */
export function createTrustWatch(
  core: Parts,
  monotonic: () => number = () => performance.now(),
): { look(signal: AbortSignal): Promise<void> } {
  let absences = new Map<string, Absence>()
  let lookedAt: number | undefined

  return {
    async look(signal) {
      const { trusts, now } = core.store
      const own = entriesOf(core.identities.trusted()).map(keyOfEntry)
      if (own.length > 0) await core.store.commit([trusts.say(own, now())])
      const others = (await trusts.list()).filter(({ entry }) => !own.includes(entry))
      const ticks = monotonic()
      const passed = lookedAt === undefined || ticks - lookedAt > GAP_MS ? 0 : ticks - lookedAt
      lookedAt = ticks
      absences = new Map(
        others.map((trust) => [trust.entry, follow(absences.get(trust.entry), trust, passed)]),
      )
      for (const trust of others)
        if ((absences.get(trust.entry)?.ms ?? 0) >= ABSENT_MS) await endAll(core, trust, signal)
    },
  }
}

function follow(before: Absence | undefined, { trustedAt }: Trust, passed: number): Absence {
  return before?.trustedAt === trustedAt ? { trustedAt, ms: before.ms + passed } : { trustedAt, ms: 0 }
}

async function endAll(core: Parts, trust: Trust, signal: AbortSignal): Promise<void> {
  const { trusts } = core.store
  for (;;) {
    const agents = await trusts.agentsOf(trust.entry, BATCH)
    for (const agent of agents) {
      if (signal.aborted) return
      await endAgent(core, SYSTEM, agent, 'untrusted', [trusts.requireSince(trust)])
    }
    if (agents.length < BATCH) break
    // Another node has the entry again.
    if (!(await trusts.list()).some((one) => one.entry === trust.entry && one.trustedAt === trust.trustedAt))
      return
  }
  await core.store.commit([trusts.forget(trust)])
  core.log.info({ entry: trust.entry }, 'no node trusts this entry any more: its agents have ended')
}
