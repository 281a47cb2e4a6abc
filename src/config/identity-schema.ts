import { Type } from 'typebox'

const STRICT = { additionalProperties: false } as const
const text = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
const optional = (maxLength: number, description: string) => Type.Optional(text(maxLength, description))
const scopes = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 64, description })

/** Longest pattern: a compiled one takes memory in proportion. */
const PATTERN = 512

/** Where the keys of an issuer are, for `identities` and `platforms`. */
const KEYS = {
  jwks_uri: optional(
    1024,
    'Where the keys of the issuer are. Without it and `jwks`, its discovery document says so.',
  ),
  jwks: Type.Optional(
    Type.Object(
      {
        keys: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
          minItems: 1,
          maxItems: 100,
          description: 'Public keys (RFC 7517).',
        }),
      },
      { description: 'The public keys of the issuer themselves, in place of an address.' },
    ),
  ),
  ca_file: optional(
    4096,
    'PEM file with the certificate authorities to trust instead of those of the system.',
  ),
  local: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'The issuer is on this machine or in its own network: permits loopback, link-local and unique-local addresses, and `http`.',
    }),
  ),
}

/** One entry of `identities` as written in the file. */
export const IdentitySchema = Type.Object(
  {
    name: text(128, 'Name of the entry, unique.'),
    issuer: optional(255, 'Issuer of the tokens, exactly as `iss` has it: `https` unless `local`.'),
    issuer_pattern: optional(
      PATTERN,
      'Pattern of the issuer, in place of `issuer`: only where one provider has many. Each part between slashes is compared for itself.',
    ),
    trust_domain: optional(
      255,
      'Trust domain of SPIFFE, in place of `issuer`: JWT-SVIDs may lack `iss`. Requires `jwks_uri` or `jwks`, the trust bundle.',
    ),
    audience: text(
      1024,
      'Audience of the tokens: `aud` is this text, or a list of only this. Use one that only this server has.',
    ),
    subject: optional(255, '`sub` of the tokens.'),
    subject_pattern: optional(
      PATTERN,
      'Pattern of `sub`, in place of `subject`. One that takes every subject requires a claim that is compared by equality.',
    ),
    claims: Type.Optional(
      Type.Record(
        Type.String({ minLength: 1, maxLength: 256 }),
        Type.Union([
          Type.String({ minLength: 1, maxLength: 1024 }),
          Type.Object({ pattern: Type.String({ minLength: 1, maxLength: PATTERN }) }, STRICT),
        ]),
        {
          maxProperties: 32,
          description:
            'Claims that the token must have: text is compared as it is, `{pattern: …}` over the whole value; booleans and numbers are compared as text, and nested claims are written `kubernetes.io/serviceaccount/uid`.',
        },
      ),
    ),
    agent: text(
      512,
      'Name of the agent: fixed, or a template over claims such as `ci-{run_id}`. Nobody else can take such a name.',
    ),
    concurrent: Type.Optional(
      Type.Enum(['share', 'suffix'], {
        default: 'share',
        description:
          '`share`: all logins with the same values are one agent; `suffix`: each is an agent of its own, with a random suffix.',
      }),
    ),
    scopes: scopes('Scopes of the agent. Never admin scopes.'),
    max_ttl: optional(32, 'Longest ttl of credentials issued to the agent.'),
    agent_ttl: optional(32, 'How long the agent lives after a login, from `5s`; default: `1h`.'),
    token_ttl: optional(
      32,
      'Lifetime of the access token; default: `access_token_ttl`, and ten minutes after the end of the presented token at most.',
    ),
    max_age: optional(32, 'Longest time since the issue of the presented token; default: `10m`.'),
    once: Type.Optional(
      Type.Boolean({ default: true, description: 'Take each token once. `false`: until it expires.' }),
    ),
    mode: Type.Optional(
      Type.Enum(['enforce', 'observe'], {
        default: 'enforce',
        description: '`observe`: grant nothing, and record in the audit what would have been granted.',
      }),
    ),
    token_review: Type.Optional(
      Type.Object(
        {
          url: text(1024, 'Address of the API of Kubernetes.'),
          token_file: text(4096, 'File with the token for it; read for each question.'),
        },
        {
          ...STRICT,
          description: 'Ask the API of Kubernetes at each login whether the pod and its account still exist.',
        },
      ),
    ),
    ...KEYS,
  },
  STRICT,
)

/** One entry of `platforms` as written in the file. */
export const PlatformSchema = Type.Object(
  {
    name: text(
      64,
      'Name of the platform, unique. The names of its agents begin with it and a dash; nobody else can take such a name.',
    ),
    issuer: text(255, 'Issuer of the tokens, exactly as `iss` has it: `https` unless `local`.'),
    audience: text(
      1024,
      'Audience of the tokens: `aud` is this text, or a list of only this. By the draft, the `issuer` of this server.',
    ),
    ...KEYS,
    scopes: Type.Optional(
      Type.Array(
        Type.Object(
          {
            claim: text(256, 'A claim, such as `groups`.'),
            value: text(1024, 'Its value, or one of its values.'),
            scopes: scopes('Scopes of agents with that value. Never admin scopes.'),
          },
          STRICT,
        ),
        {
          maxItems: 200,
          description:
            'Scopes by claims. Without any, an agent has no rights until an administrator gives it some.',
        },
      ),
    ),
  },
  STRICT,
)
