import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'
import type { Granted } from './issue-attempt.ts'

/** Throws `rate_limited` if the agent, its policy or the backend issues faster than its limit. */
export function takeRates(core: Pick<Core, 'rates' | 'settings'>, { holder, backend, plan }: Granted): void {
  const limits = [
    [`issue|agent|${holder.agentId}`, core.settings.issueRate],
    [`issue|policy|${holder.policy}`, holder.bounds.issueRate],
    [`issue|backend|${backend.uid}`, backend.rate],
  ] as const
  for (const [key, rate] of limits) {
    if (rate !== undefined)
      takeOrRefuse(
        core.rates,
        key,
        rate,
        plan.now,
        'Credentials are being requested faster than is allowed here.',
      )
  }
}

/** Runs `work`, which records the credential, within the quotas of the agent and the backend. */
export function withPlaces<T>(
  core: Pick<Core, 'quotas' | 'settings' | 'store'>,
  { holder, backend }: Granted,
  work: () => Promise<T>,
): Promise<T> {
  const { credentials } = core.store
  const maxActive = holder.bounds.maxActive ?? Number.POSITIVE_INFINITY
  const perAgent = Math.min(core.settings.maxActivePerAgent, maxActive)
  const ofAgent = {
    key: `agent|${holder.agentId}`,
    limit: perAgent,
    count: () => credentials.countLiving(holder.agentId, perAgent),
    message: messageOf(perAgent),
  }
  const perBackend = backend.maxActive
  if (perBackend === undefined) return core.quotas.withPlace(ofAgent, work)
  const ofBackend = {
    key: `backend|${backend.uid}`,
    limit: perBackend,
    count: () => credentials.countOpenOfBackend(backend.uid, perBackend),
    message: messageOf(perBackend),
  }
  return core.quotas.withPlace(ofAgent, () => core.quotas.withPlace(ofBackend, work))
}

const messageOf = (limit: number) => `At most ${limit} credentials may be active here at once; revoke some.`
