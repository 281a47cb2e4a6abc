import { MINUTE_MS, SIGNATURES_PER_MINUTE } from '../../domain/limits.ts'
import type { AgentCaller } from '../caller.ts'
import type { Core } from '../context.ts'
import { takeOrRefuse } from '../rates.ts'

/** Each use of a private signing key is recorded, so it costs disk space, too. Throws `rate_limited`. */
export function takeKeyUse(core: Pick<Core, 'rates' | 'store'>, { agentId }: AgentCaller): void {
  const rate = { count: SIGNATURES_PER_MINUTE, perMs: MINUTE_MS }
  const message = 'This agent uses its signing key too often; try again later.'
  takeOrRefuse(core.rates, `sign|${agentId}`, rate, core.store.now(), message)
}
