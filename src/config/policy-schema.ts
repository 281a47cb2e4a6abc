import { Type } from 'typebox'
import { MAX_AUDIENCES } from '../domain/audience.ts'

/** One entry of `policies` as written in the file; `domain/policy.ts` decides admission. */
export const PolicySchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 128, description: 'Name of the policy, unique.' }),
    pattern: Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Glob matched against the whole agent name, ignoring case: `*`, `?`, `[a-z]`, `{a,b}`; at most 4 `*`.',
    }),
    scopes: Type.Array(Type.String(), { maxItems: 64, description: 'Scopes given to matching agents.' }),
    auto_approve: Type.Optional(
      Type.Boolean({ default: false, description: 'Approve at once; otherwise an administrator decides.' }),
    ),
    max_agent_lifetime: Type.Optional(
      Type.String({ description: 'Longest lifetime of an agent, no matter who approves it, such as `24h`.' }),
    ),
    max_ttl: Type.Optional(
      Type.String({
        description:
          'Longest ttl of credentials issued to its agents. They keep it if the policy is renamed or loosened, and so do agents that they create.',
      }),
    ),
    max_agents: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'Live agents under this policy; no more are approved at once. They count under its name: after a change of the name they start from zero.',
      }),
    ),
    rate: Type.Optional(
      Type.String({ description: 'Approvals per second, minute, hour or day, such as `10/hour`.' }),
    ),
    issue_rate: Type.Optional(
      Type.String({
        description: 'Credentials that all its agents together may request, such as `100/minute`.',
      }),
    ),
    max_active: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'Active credentials per agent. Nodes count at least every ten seconds, so n nodes may together admit up to n times as many.',
      }),
    ),
    audiences: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        maxItems: MAX_AUDIENCES,
        description:
          'Audiences that its agents may request tokens for, in addition to the issuer and those of the server.',
      }),
    ),
    suffix: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Give each agent that it approves at once a name of its own: the requested one and a random suffix. Otherwise only if the name is taken.',
      }),
    ),
    deny: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 64,
        description:
          'Scope patterns that this policy never grants; a request for one waits for an administrator.',
      }),
    ),
  },
  { additionalProperties: false },
)
