import type { Agent } from '../../domain/agent.ts'
import { formatDuration, LONGEST_MS, requireLifetime } from '../../domain/duration.ts'
import { invalid } from '../../domain/problems.ts'
import type { Core } from '../context.ts'

export interface ExpiryChanges {
  /** A duration from now. */
  readonly expires_in?: string | undefined
  /** RFC 3339; null: never. */
  readonly expires_at?: string | null | undefined
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/

/** Throws `invalid_request`. */
export function checkExpiry({ expires_in, expires_at }: ExpiryChanges): void {
  if (expires_in !== undefined && expires_at !== undefined)
    throw invalid('Send "expires_in" or "expires_at", not both.')
  if (expires_in !== undefined) requireLifetime(expires_in, 'expires_in')
  if (typeof expires_at === 'string') readTime(expires_at)
}

/** Epoch ms; null: never. Throws `invalid_request` for the past, and for longer than its policy allows. */
export function decideExpiry(
  core: Pick<Core, 'store' | 'settings'>,
  agent: Agent,
  { expires_in, expires_at }: ExpiryChanges,
): number | null {
  if (expires_in === undefined && expires_at === undefined) return agent.expiresAt
  const now = core.store.now()
  const wanted =
    expires_in === undefined ? timeOrNever(expires_at) : now + requireLifetime(expires_in, 'expires_in')
  if (wanted !== null && wanted <= now)
    throw invalid('"expires_at" has passed; delete the agent to end it now.')
  if (wanted !== null && wanted >= now + LONGEST_MS)
    throw invalid('"expires_at" must be less than a thousand years from now.')
  requireWithinPolicy(core, agent, wanted)
  return wanted
}

const timeOrNever = (text: string | null | undefined) => (text == null ? null : readTime(text))

function readTime(text: string): number {
  const day = text.slice(0, 10)
  const time = RFC3339.test(text) ? Date.parse(text) : Number.NaN
  // `Date.parse` reads February 30th as March 2nd.
  if (Number.isNaN(time) || new Date(day).toISOString().slice(0, 10) !== day)
    throw invalid('"expires_at" must be a time such as 2026-01-31T12:00:00Z.')
  return time
}

/** Its policy limits the whole life of an agent, no matter who extends it. */
function requireWithinPolicy(
  { settings }: Pick<Core, 'settings'>,
  agent: Agent,
  wanted: number | null,
): void {
  const policy = settings.policies.find(({ name }) => name === agent.policy)
  const longest = policy?.maxAgentLifetimeMs
  if (policy === undefined || longest === undefined) return
  const [before, after] = [agent.expiresAt, wanted].map((time) => time ?? Number.POSITIVE_INFINITY)
  if ((after ?? 0) <= Math.max(before ?? 0, agent.createdAt + longest)) return
  throw invalid(
    `The policy "${policy.name}" allows at most ${formatDuration(longest)} from the creation of the agent.`,
  )
}
