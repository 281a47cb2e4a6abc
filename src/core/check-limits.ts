import { Problem } from '../domain/problems.ts'
import type { Core } from './context.ts'
import type { Plan } from './issue-plan.ts'
import { takeOrRefuse } from './rates.ts'

/** What was counted in the store, and what was issued here since. */
interface Tally {
  counted: number
  at: number
  since: number
}

const tallies = new WeakMap<object, Map<string, Tally>>()
/** A count is trusted this long while it is far from the limit. */
const TRUST_MS = 10_000
const MAX_TALLIES = 50_000

/**
 * Rates and numbers of active credentials (decisions §9). Counting thousands of rows for every issue would be
 * absurd: the count is kept, what was issued since is added, and near the limit it is counted again. On several
 * nodes the limit may be passed by what the others issued in the last ten seconds.
 */
export async function checkLimits(core: Core, plan: Plan): Promise<void> {
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
  await checkTally(core, `agent|${caller.agentId}`, perAgent, now, () =>
    core.store.credentials.countLiving(caller.agentId, perAgent),
  )
  const perBackend = backend.maxActive
  if (perBackend !== undefined) {
    await checkTally(core, `backend|${backend.uid}`, perBackend, now, () =>
      core.store.credentials.countOpenOfBackend(backend.uid, perBackend),
    )
  }
}

async function checkTally(
  core: Core,
  key: string,
  limit: number,
  now: number,
  count: () => Promise<number>,
): Promise<void> {
  const all = talliesOf(core)
  let tally = all.get(key)
  const near = tally !== undefined && tally.counted + tally.since >= limit
  if (tally === undefined || near || now - tally.at > TRUST_MS) {
    if (all.size >= MAX_TALLIES) all.clear()
    tally = { counted: await count(), at: now, since: 0 }
    all.set(key, tally)
  }
  if (tally.counted + tally.since >= limit) {
    throw new Problem('rate_limited', {
      message: `At most ${limit} credentials may be active here at once; revoke some.`,
      retryAfterSeconds: 60,
    })
  }
  tally.since += 1
}

function talliesOf(core: Core): Map<string, Tally> {
  let all = tallies.get(core.rates)
  if (all === undefined) {
    all = new Map()
    tallies.set(core.rates, all)
  }
  return all
}
