import { Type } from 'typebox'
import * as Field from './shared.ts'

/** The policies that decide about enrollments, as administrators see them. */
const AUDIENCE = 'sts.amazonaws.com'
const policyName = 'ci'
export const Policy = Field.shown('Policy', {
  name: Field.text('Its name.', policyName),
  pattern: Field.text('The names of agents that it is for.', 'ci-*'),
  scopes: Field.shownScopes('The scopes that it approves.'),
  auto_approve: Field.flag('Whether it approves without an administrator.'),
  max_agent_lifetime: Type.Optional(Field.lasts('The longest that its agents live.', '24h')),
  max_ttl: Type.Optional(Field.lasts('The longest `ttl` of their credentials.', '1h')),
  max_agents: Type.Optional(Field.count('How many agents live under it at most.', 50)),
  rate: Type.Optional(Field.text('How many it approves in a time.', '10/hour')),
  issue_rate: Type.Optional(
    Field.text('How many credentials its agents are issued in a time.', '100/minute'),
  ),
  max_active: Type.Optional(Field.count('How many active credentials each of its agents has at most.', 20)),
  audiences: Type.Optional(
    Type.Array(Field.text('An audience.', AUDIENCE), { description: 'Audiences of its agents.' }),
  ),
  suffix: Type.Optional(Field.flag('Whether each agent that it approves gets a name of its own.')),
  deny: Field.shownScopes('The scopes that it never approves.'),
})

export const ExplainQuery = Field.closed({
  name: Field.name('The name that would enroll.', 'ci-build'),
  scope: Type.Optional(
    Type.Array(Field.Scope, { maxItems: 64, description: 'Repeatable; default: the scopes of the policy.' }),
  ),
})

export const Explanation = Field.shown('Explanation', {
  name: Field.text('The name.', 'ci-build'),
  decision: Field.oneOf(
    ['approve', 'wait'],
    'Whether a policy approves it at once, or it waits for an administrator.',
  ),
  reason: Field.nullable(Field.text('Why an administrator must look at it.', 'no policy matches')),
  policy: Field.nullable(Field.text('The policy that decides.', policyName)),
  scopes: Field.shownScopes('The scopes it would hold, or those requested.'),
  expires_in: Field.nullable(Field.lasts('How long the agent would live.', '24h')),
  policies: Type.Array(
    Type.Object({
      name: Field.text('Name of the policy.', policyName),
      pattern: Field.text('Its pattern.', 'ci-*'),
      matches: Field.flag('Whether the name matches.'),
      decides: Field.flag('Whether it is the first policy that matches.'),
    }),
    { description: 'All policies, in order of evaluation.' },
  ),
  warnings: Field.ScopeWarnings,
})
