import { Problem } from '../domain/problems.ts'
import type { Core } from './context.ts'
import type { Plan } from './issue-plan.ts'
import { takeOrRefuse } from './rates.ts'

/** What was counted in the store, and what was let through here since. */
interface Tally {
  counted: number
  at: number
  since: number
  /** Let through, and perhaps not in the store yet: a count may miss them. */
  underWay: number
  /** Shared by all who find it stale. */
  counting: Promise<void> | undefined
}

const tallies = new WeakMap<object, Map<string, Tally>>()
/** A count is trusted this long while it is far from the limit. */
const TRUST_MS = 10_000
const MAX_TALLIES = 50_000

/**
 * Rates and numbers of active credentials (decisions §9). Counting thousands of rows for every issue would be
 * absurd: the count is kept, what was issued since is added, and near the limit it is counted again. On several
 * nodes the limit may be passed by what the others issued in the last ten seconds. What is returned is to be called
 * once the credential is in the store, or has failed. Throws `rate_limited`.
 */
export async function checkLimits(core: Core, plan: Plan): Promise<() => void> {
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
  const ofAgent = await checkTally(core, `agent|${caller.agentId}`, perAgent, now, () =>
    core.store.credentials.countLiving(caller.agentId, perAgent),
  )
  const perBackend = backend.maxActive
  if (perBackend === undefined) return () => release(ofAgent)
  try {
    const ofBackend = await checkTally(core, `backend|${backend.uid}`, perBackend, now, () =>
      core.store.credentials.countOpenOfBackend(backend.uid, perBackend),
    )
    return () => release(ofAgent, ofBackend)
  } catch (error) {
    release(ofAgent)
    throw error
  }
}

function release(...tallies: Tally[]): void {
  for (const tally of tallies) tally.underWay -= 1
}

async function checkTally(
  core: Core,
  key: string,
  limit: number,
  now: number,
  count: () => Promise<number>,
): Promise<Tally> {
  const all = talliesOf(core)
  let tally = all.get(key)
  if (tally === undefined) {
    if (all.size >= MAX_TALLIES) all.clear()
    tally = { counted: 0, at: Number.NEGATIVE_INFINITY, since: 0, underWay: 0, counting: undefined }
    all.set(key, tally)
  }
  if (tally.counted + tally.since >= limit || now - tally.at > TRUST_MS) {
    tally.counting ??= recount(tally, now, count)
    await tally.counting
  }
  if (tally.counted + tally.since >= limit) {
    throw new Problem('rate_limited', {
      message: `At most ${limit} credentials may be active here at once; revoke some.`,
      retryAfterSeconds: 60,
    })
  }
  tally.since += 1
  tally.underWay += 1
  return tally
}

/** Those under way when it begins are added: counted twice at worst, and never missed. */
async function recount(tally: Tally, now: number, count: () => Promise<number>): Promise<void> {
  const { underWay } = tally
  try {
    tally.counted = (await count()) + underWay
    tally.at = now
    tally.since = 0
  } finally {
    tally.counting = undefined
  }
}

function talliesOf(core: Core): Map<string, Tally> {
  let all = tallies.get(core.rates)
  if (all === undefined) {
    all = new Map()
    tallies.set(core.rates, all)
  }
  return all
}
