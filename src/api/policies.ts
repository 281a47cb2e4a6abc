import { Type } from 'typebox'
import {
  closed,
  count,
  flag,
  lasts,
  name,
  nullable,
  oneOf,
  Scope,
  ScopeWarnings,
  shown,
  shownScopes,
  text,
} from './shared.ts'

/** The policies that decide about enrollments, as administrators see them. */
const AUDIENCE = 'sts.amazonaws.com'
const policyName = 'ci'
export const Policy = shown('Policy', {
  name: text('Its name.', policyName),
  pattern: text('The names of agents that it is for.', 'ci-*'),
  scopes: shownScopes('The scopes that it approves.'),
  auto_approve: flag('Whether it approves without an administrator.'),
  max_agent_lifetime: Type.Optional(lasts('The longest that its agents live.', '24h')),
  max_ttl: Type.Optional(lasts('The longest `ttl` of their credentials.', '1h')),
  max_agents: Type.Optional(count('How many agents live under it at most.', 50)),
  rate: Type.Optional(text('How many it approves in a time.', '10/hour')),
  issue_rate: Type.Optional(text('How many credentials its agents are issued in a time.', '100/minute')),
  max_active: Type.Optional(count('How many active credentials each of its agents has at most.', 20)),
  audiences: Type.Optional(
    Type.Array(text('An audience.', AUDIENCE), { description: 'Audiences of its agents.' }),
  ),
  suffix: Type.Optional(flag('Whether each agent that it approves gets a name of its own.')),
  deny: shownScopes('The scopes that it never approves.'),
})

export const ExplainQuery = closed({
  name: name('The name that would enroll.', 'ci-build'),
  scope: Type.Optional(
    Type.Array(Scope, { maxItems: 64, description: 'Repeatable; default: the scopes of the policy.' }),
  ),
})

export const Explanation = shown('Explanation', {
  name: text('The name.', 'ci-build'),
  decision: oneOf(
    ['approve', 'wait'],
    'Whether a policy approves it at once, or it waits for an administrator.',
  ),
  reason: nullable(text('Why an administrator must look at it.', 'no policy matches')),
  policy: nullable(text('The policy that decides.', policyName)),
  scopes: shownScopes('The scopes it would hold, or those requested.'),
  expires_in: nullable(lasts('How long the agent would live.', '24h')),
  policies: Type.Array(
    Type.Object({
      name: text('Name of the policy.', policyName),
      pattern: text('Its pattern.', 'ci-*'),
      matches: flag('Whether the name matches.'),
      decides: flag('Whether it is the first policy that matches.'),
    }),
    { description: 'All policies, in order of evaluation.' },
  ),
  warnings: ScopeWarnings,
})
