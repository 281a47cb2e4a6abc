import type { OpenBackend } from '../backends/open-backends.ts'
import { claimedUntil } from '../core/backends/call-upstream.ts'
import type { Core } from '../core/context.ts'
import type { Credential } from '../domain/credential.ts'

/** Credentials that are read, and on PostgreSQL claimed, together. */
const BATCH = 64
/** While some are held: how often to look for those of other agents, how far in one query, and how many of one agent to take. */
export const LOOK_EVERY_MS = 250
const LOOK_AT = 2_000
const LOOK_PER_AGENT = 4
/** Claimed credentials that wait in memory. */
const MOST_WAITING = 1_024

interface Waiting {
  readonly credential: Credential
  readonly takenAt: number
}

type Parts = Pick<Core, 'store' | 'settings'>

/** What is due at one backend, in an order that is fair to all agents. */
export function createDueQueue(core: Parts, backend: OpenBackend) {
  const { lanes, breakers } = backend
  const { credentials, now } = core.store
  const underWay = new Set<string>()
  let waiting: Waiting[] = []
  let looked = { at: performance.now(), from: 0 }

  /** Adds new ones. Returns whether there were any. */
  function add(taken: readonly Credential[]): boolean {
    const known = new Set([...underWay, ...waiting.map(({ credential }) => credential.id)])
    const more = taken.filter(({ id }) => !known.has(id))
    const takenAt = performance.now()
    waiting.push(...more.map((credential) => ({ credential, takenAt })))
    return more.length > 0
  }

  return {
    /** Credentials that `next` has returned. Remove each one when it has ended. */
    underWay,
    /** Undefined: none may begin now. */
    next(): Credential | undefined {
      const one = underWay.size < lanes.room() ? fairest(waiting, lanes) : undefined
      if (one === undefined) return undefined
      waiting.splice(waiting.indexOf(one), 1)
      underWay.add(one.credential.id)
      return one.credential
    },
    /** Returns whether anything new is due and may begin. */
    async takeEarliest(): Promise<boolean> {
      if (waiting.length > 0 || underWay.size >= lanes.room()) return false
      const at = now()
      // After a pause of the breaker, one call decides for all. SQLite claims nothing, so credentials under way are read again.
      const limit = (breakers.revoking.isTrying() ? 1 : BATCH) + underWay.size
      return add(await credentials.takeDue(backend.uid, at, claimedUntil(core, at), limit))
    },
    /**
     * While revocations are held up, takes some of other agents, however many of one agent are due before them. Each
     * look is short: it continues where the last one stopped.
     */
    async takeOfOthers(): Promise<void> {
      const isTime = performance.now() - looked.at >= LOOK_EVERY_MS || looked.from > 0
      if (!isTime || !lanes.isHeld() || waiting.length >= MOST_WAITING) return
      const at = now()
      const due = await credentials.scanDue(backend.uid, at, looked.from, LOOK_AT)
      looked = { at: performance.now(), from: due.length < LOOK_AT ? 0 : looked.from + LOOK_AT }
      const taken = new Map(waiting.map(({ credential }) => [credential.agentId, LOOK_PER_AGENT]))
      const ids: string[] = []
      for (const { id, agentId } of due) {
        const count = taken.get(agentId) ?? lanes.of(agentId)
        if (count >= LOOK_PER_AGENT || underWay.has(id)) continue
        taken.set(agentId, count + 1)
        if (ids.push(id) === BATCH) break
      }
      if (ids.length > 0) add(await credentials.takeThese(ids, at, claimedUntil(core, at)))
    },
    /** Forgets credentials that have waited so long that their claim may expire before their call. */
    dropOld(): void {
      const until = performance.now() - core.settings.upstreamTimeoutMs
      waiting = waiting.filter(({ takenAt }) => takenAt > until)
    },
    /** Claimed credentials whose revocation has not begun are due again at once. */
    async release(): Promise<void> {
      const ids = waiting.map(({ credential }) => credential.id)
      if (ids.length === 0 || !core.store.hasOtherNodes) return
      await core.store.commit([credentials.release(ids, now())], { urgent: true })
    },
  }
}

/** The first credential of the agent that has the fewest under way. */
function fairest(waiting: readonly Waiting[], lanes: OpenBackend['lanes']): Waiting | undefined {
  let best: Waiting | undefined
  let fewest = Number.POSITIVE_INFINITY
  for (const one of waiting) {
    const { agentId } = one.credential
    const count = lanes.of(agentId)
    if (count >= fewest || !lanes.mayBegin(agentId)) continue
    best = one
    fewest = count
    if (count === 0) break
  }
  return best
}
