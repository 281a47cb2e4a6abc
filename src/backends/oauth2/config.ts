import Type, { type Static } from 'typebox'
import { unsupported } from '../../domain/backend-error.ts'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'
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
  token_endpoint: Field.upstream('URL of the token endpoint.', URL_TEXT),
  grant: Field.choice(
    ['client_credentials', 'refresh_token', 'token_exchange'],
    'How tokens are obtained: client_credentials, refresh_token or token_exchange.',
  ),
  client_id: Field.text('Id of the client that Mayfly is to the server.', VISIBLE),
  client_auth: Field.choice(
    ['basic', 'post', 'private_key_jwt', 'none'],
    'How the client logs in: basic, post, private_key_jwt or none.',
  ),
  client_secret: Type.Optional(Field.secret('Secret of the client, for basic and post.', VISIBLE)),
  private_key: Type.Optional(Field.secret('Private key as PEM or JWK, for private_key_jwt.', SECRET_TEXT)),
  key_id: Type.Optional(Field.text('Name (kid) under which the server knows the key.', VISIBLE)),
  assertion_audience: Type.Optional(
    Field.protection('Audience of the signed assertion. Default: the token endpoint.', TARGET),
  ),
  refresh_token: Type.Optional(Field.secret('Refresh token of somebody who has signed in.', SECRET_TEXT)),
  refresh_token_reusable: Type.Boolean({
    default: false,
    description: 'The server accepts a refresh token repeatedly: requests need not wait for each other.',
  }),
  subject_token: Type.Optional(
    Field.secret('Token to exchange. Default: one of Mayfly for the agent.', SECRET_TEXT),
  ),
  subject_token_type: Field.text('Type of the token to exchange (RFC 8693, section 3).', {
    ...TARGET,
    default: 'urn:ietf:params:oauth:token-type:jwt',
  }),
  // Another backend may be trusted by it.
  subject_audience: Type.Optional(
    Field.guarded(
      Field.protection("Audience of Mayfly's token for the agent. Default: the token endpoint.", TARGET),
    ),
  ),
  scopes: Type.Optional(Field.list(Field.text('Scope.', VISIBLE), 64, SCOPES)),
  audience: Type.Optional(Field.text('Sent as "audience", where the server wants one.', TARGET)),
  resource: Type.Optional(Field.text('Sent as "resource" (RFC 8707), where the server wants one.', TARGET)),
  token_lifetime: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 31_536_000,
      description: 'Seconds that tokens live, for a server that does not say.',
    }),
  ),
  ca: Field.ca('PEM of the certificate authority of the server.'),
  local: Field.local(),
  local_user: Field.localUser(),
}

const example = {
  token_endpoint: 'https://login.example.com/oauth2/token',
  client_id: 'mayfly',
  client_secret: 'change-me',
  scopes: ['orders:read', 'orders:write'],
}

export const config = Field.configOf(example, fields)

const revocable = { ...example, revocation_endpoint: 'https://login.example.com/oauth2/revoke' }

export const revocableConfig = Field.configOf(revocable, {
  ...fields,
  revocation_endpoint: Field.upstream('URL of the revocation endpoint (RFC 7009).', URL_TEXT),
})

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
    throw unsupported('A token has at least one scope; the request names none.')
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
    requireHttps(field, text, local)
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
