/** The revocations of one backend that are under way, by agent, so that no agent's slow ones keep out those of others. */
export interface Lanes {
  /** Whether the sweeper may begin another one of this agent. */
  mayBegin(agentId: string): boolean
  /** Whether another one of this agent may be tried at once, beside the sweeper. */
  mayTry(agentId: string): boolean
  /** Call what it returns once, when it has ended. */
  begin(agentId: string): (outcome: 'settled' | 'failed') => void
  of(agentId: string): number
  /** How many the sweeper may have under way. */
  room(): number
  /** Whether one takes so long that it may be held. */
  isHeld(): boolean
}

/**
 * Revocations of one agent that are under way at once. Start with few, to spare an upstream that shares its machine or has
 * other users. Allow more for a slow one: waiting costs it nothing.
 */
const AT_ONCE = { least: 4, most: 16 }
/** With this time for each, 10,000 that are due in the same second end in half a minute, and issuing keeps its pace. */
const EACH_MS = 2
/** A revocation that takes longer leaves its place to others. */
const HELD_AFTER_MS = 1_000
/** How long after a late failure its agent gets the fewest. */
const SUSPECT_MS = 60_000
/** Of all agents, held ones included. */
const MOST = 24
/** How much the latest one weighs in the mean. */
const WEIGHT = 1 / 16

/** How many of one agent to revoke at once where one takes so long. */
export function revokedAtOnce(tookMs: number): number {
  return Math.min(AT_ONCE.most, Math.max(AT_ONCE.least, Math.ceil(tookMs / EACH_MS)))
}

export function createLanes(now: () => number = () => performance.now()): Lanes {
  const begun = new Set<{ readonly at: number; readonly agentId: string }>()
  const byAgent = new Map<string, number>()
  const suspects = new Map<string, number>()
  let meanMs = 0
  const of = (agentId: string) => byAgent.get(agentId) ?? 0
  const held = () => {
    const since = now() - HELD_AFTER_MS
    return [...begun].filter(({ at }) => at <= since)
  }
  const isSuspect = (agentId: string) =>
    (suspects.get(agentId) ?? Number.NEGATIVE_INFINITY) > now() ||
    held().some((one) => one.agentId === agentId)
  const shareOf = (agentId: string, most: number) =>
    of(agentId) < AT_ONCE.least || (of(agentId) < most && !isSuspect(agentId))
  function suspect(agentId: string): void {
    for (const [id, until] of suspects) if (until <= now()) suspects.delete(id)
    suspects.set(agentId, now() + SUSPECT_MS)
  }
  return {
    of,
    room: () => Math.min(MOST, revokedAtOnce(meanMs) + held().length),
    isHeld: () => held().length > 0,
    mayBegin: (agentId) => shareOf(agentId, revokedAtOnce(meanMs)),
    mayTry: (agentId) => shareOf(agentId, AT_ONCE.most),
    begin(agentId) {
      const one = { at: now(), agentId }
      begun.add(one)
      byAgent.set(agentId, of(agentId) + 1)
      return (outcome) => {
        begun.delete(one)
        const left = of(agentId) - 1
        if (left > 0) byAgent.set(agentId, left)
        else byAgent.delete(agentId)
        const tookMs = now() - one.at
        // Only a successful one shows how slow the upstream is: a holder can make one fail as late as it likes.
        if (outcome === 'settled') meanMs += (tookMs - meanMs) * WEIGHT
        else if (tookMs >= HELD_AFTER_MS) suspect(agentId)
      }
    },
  }
}
