import { Problem } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'
import type { Plan } from './issue-plan.ts'

/** What was counted in the store, and what was let through here since. */
interface Tally {
  counted: number
  at: number
  since: number
  /** Let through and not on record yet, so that a count may miss them. */
  underWay: number
  /** The count that is being made, shared by all who need one. */
  counting: Promise<void> | undefined
  /** Resolves when nothing is under way any more; made when somebody waits for that. */
  drained: PromiseWithResolvers<void> | undefined
}

/** What one issue has taken of the numbers that are limited, until it is on record. */
export type Places = Tally[]

const tallies = new WeakMap<object, Map<string, Tally>>()
/** A count is trusted this long while it is far from the limit. */
const TRUST_MS = 10_000
const MAX_TALLIES = 50_000

/**
 * Rates and numbers of active credentials (decisions §9). Counting thousands of rows for every issue would be
 * absurd: the count is kept, what was issued since is added, and near the limit it is counted again. However many
 * ask in one moment, a number is not passed on one node; on several it may be, by what the others issued in the
 * last ten seconds. The caller gives the places back by `leavePlaces` once the issue is on record, or failed.
 */
export async function checkLimits(core: Core, plan: Plan): Promise<Places> {
  const { caller, backend, now } = plan
  const policy =
    caller.policy === null ? undefined : core.settings.policies.find((one) => one.name === caller.policy)
  const rates = [
    [`issue|agent|${caller.agentId}`, core.settings.issueRate],
    [`issue|policy|${caller.policy}`, policy?.issueRate],
    [`issue|backend|${backend.uid}`, backend.rate],
  ] as const
  for (const [key, rate] of rates) {
    if (rate !== undefined)
      takeOrRefuse(core.rates, key, rate, now, 'Credentials are being asked for faster than is allowed here.')
  }
  const perAgent = Math.min(core.settings.maxActivePerAgent, policy?.maxActive ?? Number.POSITIVE_INFINITY)
  const places: Places = []
  try {
    const ofAgent = tallyOf(core, `agent|${caller.agentId}`)
    const countLiving = () => core.store.credentials.countLiving(caller.agentId, perAgent)
    places.push(await takePlace(ofAgent, perAgent, now, countLiving))
    const perBackend = backend.maxActive
    if (perBackend === undefined) return places
    const ofBackend = tallyOf(core, `backend|${backend.uid}`)
    const countOpen = () => core.store.credentials.countOpenOfBackend(backend.uid, perBackend)
    places.push(await takePlace(ofBackend, perBackend, now, countOpen))
    return places
  } catch (error) {
    leavePlaces(places)
    throw error
  }
}

/** The next count finds the credential, or it will never be. Again does nothing. */
export function leavePlaces(places: Places): void {
  for (const tally of places.splice(0)) {
    tally.underWay -= 1
    if (tally.underWay > 0) continue
    tally.drained?.resolve()
    tally.drained = undefined
  }
}

/** Throws `rate_limited` when all are taken. */
async function takePlace(
  tally: Tally,
  limit: number,
  now: number,
  count: () => Promise<number>,
): Promise<Tally> {
  if (tally.counting !== undefined || now - tally.at > TRUST_MS) await countAnew(tally, now, count)
  while (tally.counted + tally.since >= limit) {
    // A count is exact only while nothing is under way: that would be missed, or counted twice.
    if (tally.underWay > 0) {
      tally.drained ??= Promise.withResolvers<void>()
      await tally.drained.promise
      continue
    }
    await countAnew(tally, now, count)
    if (tally.counted >= limit) {
      throw new Problem('rate_limited', {
        message: `At most ${limit} credentials may be active here at once; revoke some.`,
        retryAfterSeconds: 60,
      })
    }
  }
  tally.since += 1
  tally.underWay += 1
  return tally
}

/** Nobody is let through meanwhile: whoever comes waits for this count. */
function countAnew(tally: Tally, now: number, count: () => Promise<number>): Promise<void> {
  const { underWay } = tally
  tally.counting ??= count()
    .then((counted) => {
      tally.counted = counted
      tally.since = underWay
      tally.at = now
    })
    .finally(() => {
      tally.counting = undefined
    })
  return tally.counting
}

function tallyOf(core: Core, key: string): Tally {
  let all = tallies.get(core.rates)
  if (all === undefined) {
    all = new Map()
    tallies.set(core.rates, all)
  }
  let tally = all.get(key)
  if (tally === undefined) {
    if (all.size >= MAX_TALLIES) all.clear()
    const at = Number.NEGATIVE_INFINITY
    tally = { counted: 0, at, since: 0, underWay: 0, counting: undefined, drained: undefined }
    all.set(key, tally)
  }
  return tally
}
