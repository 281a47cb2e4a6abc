import { explainPolicy } from '../../../core/enrollments/explain-policy.ts'
import { scopeWarnings } from '../../../core/granting-backend.ts'
import { formatDuration } from '../../../domain/duration.ts'
import { formatRate } from '../../../domain/policy.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { firstPage } from '../paging.ts'
import { optional, presentWarnings } from '../wire.ts'

export function adminPolicyRoutes(http: Http): void {
  addRoute(http, 'GET /v1/admin/policies', (call) => {
    const { policies } = http.core.settings
    // In the configured order, in which they decide. An unknown cursor starts from the beginning.
    const rest = policies.slice(policies.findIndex(({ name }) => name === call.query.cursor) + 1)
    return firstPage(call, rest, ({ name }) => name).map((policy) => ({
      name: policy.name,
      pattern: policy.pattern,
      scopes: policy.scopes,
      auto_approve: policy.autoApprove,
      ...lasting('max_agent_lifetime', policy.maxAgentLifetimeMs),
      ...lasting('max_ttl', policy.maxTtlMs),
      ...optional('max_agents', policy.maxAgents),
      ...optional('rate', policy.rate && formatRate(policy.rate)),
      ...optional('issue_rate', policy.issueRate && formatRate(policy.issueRate)),
      ...optional('max_active', policy.maxActive),
      ...optional('audiences', policy.audiences),
      ...optional('suffix', policy.suffix),
      deny: policy.deny,
    }))
  })

  addRoute(http, 'GET /v1/admin/policies/explain', async ({ query: { name, scope } }) => {
    const found = await explainPolicy(http.core, { name, scopes: scope })
    return {
      name,
      decision: found.decision,
      reason: found.reason === '' ? null : found.reason,
      policy: found.policy ?? null,
      scopes: [...found.scopes],
      expires_in: found.lifetimeMs === undefined ? null : formatDuration(found.lifetimeMs),
      policies: [...found.policies],
      ...presentWarnings(await scopeWarnings(http.core, found.scopes)),
    }
  })
}

function lasting<K extends string>(key: K, ms: number | undefined): { [P in K]?: string } {
  return optional(key, ms === undefined ? undefined : formatDuration(ms))
}
