import Type, { type Static } from 'typebox'
import { BackendError } from '../../domain/backend-error.ts'
import { caField, localField, localUserField, requireConfig } from '../fields.ts'
import { guardedField, protectionField, secretField, upstreamField } from '../kind.ts'
import { givenBy, readNamed, requireGiven, requireNamed } from '../named-scopes.ts'

const URL_TEXT = { minLength: 9, maxLength: 1024, pattern: '^https?://[\\x21-\\x7e]+$' }
/** RFC 6749, appendix A.1 and A.2: VSCHAR. */
const VISIBLE = { minLength: 1, maxLength: 1024, pattern: '^[\\x20-\\x7e]+$' }
/** An absolute URI (RFC 8707 §2), or what a server takes for one. */
const TARGET = { minLength: 1, maxLength: 512, pattern: '^[\\x21-\\x7e]+$' }
const SECRET_TEXT = { minLength: 1, maxLength: 16_384 }

const SCOPES =
  'Scopes that are granted, one for one, or as <name>=<scopes of the server>. Default: all, one for one.'

const fields = {
  token_endpoint: Type.String(upstreamField({ ...URL_TEXT, description: 'URL of the token endpoint.' })),
  grant: Type.Union(
    [Type.Literal('client_credentials'), Type.Literal('refresh_token'), Type.Literal('token_exchange')],
    {
      default: 'client_credentials',
      description: 'How tokens are obtained: client_credentials, refresh_token or token_exchange.',
    },
  ),
  client_id: Type.String({ ...VISIBLE, description: 'Id of the client that Mayfly is to the server.' }),
  client_auth: Type.Union(
    [Type.Literal('basic'), Type.Literal('post'), Type.Literal('private_key_jwt'), Type.Literal('none')],
    { default: 'basic', description: 'How the client logs in: basic, post, private_key_jwt or none.' },
  ),
  client_secret: Type.Optional(
    Type.String(secretField({ ...VISIBLE, description: 'Secret of the client, for basic and post.' })),
  ),
  private_key: Type.Optional(
    Type.String(
      secretField({ ...SECRET_TEXT, description: 'Private key as PEM or JWK, for private_key_jwt.' }),
    ),
  ),
  key_id: Type.Optional(
    Type.String({ ...VISIBLE, description: 'Name (kid) under which the server knows the key.' }),
  ),
  assertion_audience: Type.Optional(
    Type.String(
      protectionField({
        ...TARGET,
        description: 'Audience of the signed assertion. Default: the token endpoint.',
      }),
    ),
  ),
  refresh_token: Type.Optional(
    Type.String(secretField({ ...SECRET_TEXT, description: 'Refresh token of somebody who has signed in.' })),
  ),
  refresh_token_reusable: Type.Boolean({
    default: false,
    description: 'The server accepts a refresh token repeatedly: requests need not wait for each other.',
  }),
  subject_token: Type.Optional(
    Type.String(
      secretField({
        ...SECRET_TEXT,
        description: 'Token to exchange. Default: one of Mayfly for the agent.',
      }),
    ),
  ),
  subject_token_type: Type.String({
    ...TARGET,
    default: 'urn:ietf:params:oauth:token-type:jwt',
    description: 'Type of the token to exchange (RFC 8693, section 3).',
  }),
  // Another backend may be trusted by it.
  subject_audience: Type.Optional(
    Type.String(
      guardedField(
        protectionField({
          ...TARGET,
          description: "Audience of Mayfly's token for the agent. Default: the token endpoint.",
        }),
      ),
    ),
  ),
  scopes: Type.Optional(
    Type.Array(Type.String({ ...VISIBLE, description: 'Scope.' }), {
      minItems: 1,
      maxItems: 64,
      description: SCOPES,
    }),
  ),
  audience: Type.Optional(
    Type.String({ ...TARGET, description: 'Sent as "audience", where the server wants one.' }),
  ),
  resource: Type.Optional(
    Type.String({ ...TARGET, description: 'Sent as "resource" (RFC 8707), where the server wants one.' }),
  ),
  token_lifetime: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31_536_000,
      description: 'Seconds that tokens live, for a server that does not say.',
    }),
  ),
  ca: caField('PEM of the certificate authority of the server.'),
  local: localField(
    'The server is on this machine or in its own network: permits loopback addresses and http.',
  ),
  local_user: localUserField(),
}

const example = {
  token_endpoint: 'https://login.example.com/oauth2/token',
  client_id: 'mayfly',
  client_secret: 'change-me',
  scopes: ['orders:read', 'orders:write'],
}

export const config = Type.Object(fields, { additionalProperties: false, examples: [example] })

export const revocableConfig = Type.Object(
  {
    ...fields,
    revocation_endpoint: Type.String(
      upstreamField({ ...URL_TEXT, description: 'URL of the revocation endpoint (RFC 7009).' }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ ...example, revocation_endpoint: 'https://login.example.com/oauth2/revoke' }],
  },
)

export type Config = Static<typeof config> & { readonly revocation_endpoint?: string }

/** Without configured scopes only a name can be asked for: the server knows no wildcards. */
export function gives({ scopes }: Config, scope: string): boolean {
  return scopes === undefined ? !scope.includes('*') : givenBy(readNamed(scopes), scope).length > 0
}

/** The server's scopes for ours. Throws `unsupported` for one that it cannot be narrowed to. */
export function translate({ scopes: entries }: Config, scopes: readonly string[]): readonly string[] {
  // Without configured scopes each stands for itself.
  const named = entries === undefined ? scopes.filter((scope) => !scope.includes('*')) : entries
  const asked = requireGiven(readNamed(named), scopes).flatMap((text) => text.split(' '))
  // RFC 6749 §3.3: without a scope the server gives what it likes.
  if (asked.length === 0) {
    throw new BackendError('unsupported', 'A token has at least one scope; the request names none.')
  }
  return [...new Set(asked)]
}

/** RFC 6749 §3.3: scope-token. */
const THEIRS = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { grant, client_auth: auth, local } = settings
  for (const field of ['token_endpoint', 'revocation_endpoint'] as const) {
    const text = settings[field]
    if (text === undefined) continue
    requireConfig(URL.canParse(text), `"${field}" is not a URL.`)
    requireConfig(!text.includes('#'), `"${field}" must not have a fragment.`)
    requireConfig(
      local || text.startsWith('https:'),
      `"${field}" must begin with https:// unless "local" is set.`,
    )
  }
  const hasSecret = auth === 'basic' || auth === 'post'
  requireConfig(
    hasSecret === (settings.client_secret !== undefined),
    '"client_secret" goes with "client_auth" basic or post.',
  )
  const hasKey = auth === 'private_key_jwt'
  requireConfig(
    hasKey === (settings.private_key !== undefined),
    '"private_key" goes with "client_auth" private_key_jwt.',
  )
  requireConfig(
    grant !== 'client_credentials' || auth !== 'none',
    '"client_credentials" needs a client that logs in.',
  )
  const refreshes = grant === 'refresh_token'
  requireConfig(
    refreshes === (settings.refresh_token !== undefined),
    '"refresh_token" goes with "grant" refresh_token.',
  )
  const exchanges = grant === 'token_exchange' || settings.subject_token === undefined
  requireConfig(exchanges, '"subject_token" goes with "grant" token_exchange.')
  requireNamed('scopes', settings.scopes ?? [], THEIRS)
}
