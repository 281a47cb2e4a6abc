import { Type } from 'typebox'

/** One entry of `policies` as it is written in the file (decisions of admission: `domain/policy.ts`). */
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
      Type.String({ description: 'Longest life of an agent that was let in, such as `24h`.' }),
    ),
    max_ttl: Type.Optional(Type.String({ description: 'Longest ttl of its credentials.' })),
    max_agents: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'Living agents admitted by this policy.' }),
    ),
    rate: Type.Optional(
      Type.String({ description: 'Approvals per second, minute, hour or day, such as `10/hour`.' }),
    ),
    issue_rate: Type.Optional(
      Type.String({ description: 'Credentials that its agents may ask for together, such as `100/minute`.' }),
    ),
    max_active: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description: 'Active credentials of each of its agents.',
      }),
    ),
    deny: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 64,
        description:
          'Scope patterns that this policy never gives; asking for one waits for an administrator.',
      }),
    ),
  },
  { additionalProperties: false },
)
