import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'
import { requireNamed } from '../named-scopes.ts'

/** A mount or a path below it, without a slash at either end. */
const PATH = '[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*'
const MOUNT = { minLength: 1, maxLength: 128, pattern: `^${PATH}$` }
const ID = { minLength: 1, maxLength: 512, pattern: '^[\\x21-\\x7e]+$' }
const ENTRY = { minLength: 1, maxLength: 512 }

const fields = {
  address: Field.upstream('Address of Vault or OpenBao, such as https://vault.example.com:8200.', {
    minLength: 8,
    maxLength: 512,
    pattern: '^https?://[A-Za-z0-9.:\\[\\]-]+/?$',
  }),
  namespace: Type.Optional(Field.upstream('Namespace in which everything is done.', MOUNT)),
  auth: Field.choice(
    ['approle', 'jwt', 'token'],
    'How Mayfly logs in: approle, jwt (by a token of its own) or token.',
  ),
  auth_mount: Type.Optional(Field.text('Mount of the auth method. Default: approle or jwt.', MOUNT)),
  role: Type.Optional(Field.text('Role ID of the AppRole, or name of the role for jwt.', ID)),
  secret_id: Type.Optional(Field.secret('Secret ID of the AppRole, if it needs one.', ID)),
  token: Type.Optional(Field.secret('Token that Mayfly uses.', ID)),
  ca: Field.ca('PEM of the certificate authority of the server.'),
  local: Field.local(),
  local_user: Field.localUser(),
}

const example = { address: 'https://vault.example.com:8200', role: 'role-id', secret_id: 'change-me' }

export const tokenConfig = Field.configOf(
  { ...example, policies: ['orders-read', 'orders-write'] },
  {
    ...fields,
    policies: Field.list(
      Field.text('Policy.', ENTRY),
      64,
      'Policies that are granted, as scopes of the same name or as <scope>=<policies>.',
    ),
  },
)

export const secretConfig = Field.configOf(
  { ...example, secrets: ['orders:read=database/creds/orders-read'] },
  {
    ...fields,
    secrets: Field.list(
      Field.text('Path.', ENTRY),
      64,
      'Paths of dynamic secrets, as scopes of the same name or as <scope>=<path>.',
    ),
  },
)

export type TokenConfig = Static<typeof tokenConfig>
export type SecretConfig = Static<typeof secretConfig>
export type Config = Omit<TokenConfig, 'policies'> & {
  readonly policies?: readonly string[]
  readonly secrets?: readonly string[]
}

/** Policy names, separated by spaces; Vault writes them in lower case. */
const POLICIES = /^(?!root( |$))[a-z0-9._/@-]+( (?!root( |$))[a-z0-9._/@-]+)*$/
/** What is read is never an endpoint of the system, nor one that makes tokens. */
const SECRET = new RegExp(`^(?!sys/|auth/|identity/|cubbyhole/)${PATH}$`)

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { address, auth, local } = settings
  requireConfig(URL.canParse(address), '"address" is not a URL.')
  requireHttps('address', address, local)
  requireConfig((auth === 'token') === (settings.token !== undefined), '"token" goes with "auth" token.')
  requireConfig(
    (auth !== 'token') === (settings.role !== undefined),
    '"role" goes with "auth" approle or jwt.',
  )
  requireConfig(
    auth === 'approle' || settings.secret_id === undefined,
    '"secret_id" goes with "auth" approle.',
  )
  for (const path of [settings.namespace ?? '', settings.auth_mount ?? '', ...(settings.secrets ?? [])]) {
    requireConfig(!/(^|[/=])\.{1,2}(\/|$)/.test(path), 'A path contains "." or "..".')
  }
  requireNamed('policies', settings.policies ?? [], POLICIES)
  requireNamed('secrets', settings.secrets ?? [], SECRET)
}
