import Type, { type Static } from 'typebox'
import { isScope } from '../../domain/scope.ts'
import * as Field from '../fields.ts'
import { requireConfig, requireHttps } from '../fields.ts'
import { matches } from '../named-scopes.ts'

/** RFC 1123 label, as names of namespaces are ("Object Names and IDs"). */
const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?'
/** Roles have names that fit into a path ("Object Names and IDs"); these also fit into a scope. */
const ROLE = '[a-z0-9](?:[-a-z0-9.]{0,126}[a-z0-9])?'

const example = { server: 'https://k8s.example.com:6443', token: 'change-me', namespaces: ['shop'] }

export const config = Field.configOf(example, {
  server: Field.upstream('The API server, https://HOST:6443.', {
    maxLength: 512,
    pattern: '^https?://[^\\s?#]+$',
  }),
  ca: Field.ca("PEM of the cluster's certificate authority."),
  token: Type.Optional(Field.secret("Token of Mayfly's own service account.", { maxLength: 16_384 })),
  client_certificate: Type.Optional(
    Field.text('PEM of a client certificate, instead of the token.', { maxLength: 32_768 }),
  ),
  client_key: Type.Optional(Field.secret('PEM of its private key.', { maxLength: 16_384 })),
  // With it, a change of "server" would send the id token elsewhere.
  audience: Type.Optional(
    Field.guarded(
      Field.protection('Instead of a token: Mayfly logs in with an id token of its own for this audience.', {
        minLength: 1,
        maxLength: 512,
      }),
    ),
  ),
  home: Field.upstream('Namespace for the service accounts, which should hold nothing else.', {
    pattern: `^${LABEL}$`,
    default: 'mayfly-agents',
  }),
  namespaces: Field.list(
    Field.text('Namespace.', { pattern: `^${LABEL}$` }),
    64,
    'Namespaces that are granted.',
  ),
  roles: Field.list(
    Field.text('Role.', { pattern: `^(?:role/)?${ROLE}$` }),
    32,
    'Cluster roles that are granted in the namespaces; role/NAME is a role of the namespace.',
    { default: ['view'] },
  ),
  audiences: Type.Optional(
    Field.list(
      Type.String({ minLength: 1, maxLength: 512 }),
      16,
      'Audiences of the tokens. Default: the API server.',
    ),
  ),
  local: Field.local('The API server is on this machine or in its own network: permits loopback addresses.'),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

/** Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { server, local, token, client_certificate: certificate, client_key: key, audience } = settings
  // A credential that may read or change things there could take over the other service accounts.
  requireConfig(!settings.namespaces.includes(settings.home), '"namespaces" must not include "home".')
  requireHttps('server', server, local)
  requireConfig(
    (certificate === undefined) === (key === undefined),
    '"client_certificate" needs "client_key".',
  )
  const logins = [token, certificate, audience].filter((login) => login !== undefined)
  requireConfig(logins.length === 1, 'Give one of "token", "client_certificate" and "audience".')
}

/** A role that a credential is to have in a namespace. */
export interface Grant {
  readonly namespace: string
  readonly role: string
}

const SCOPE =
  /^(?:\*|[a-z0-9][-a-z0-9]{0,62}\*?)(?::(?:\*|(?:role\/)?[a-z0-9][-a-z0-9.]{0,127}\*?|role\/\*))?$/

export function isValid(scope: string): boolean {
  return isScope(scope) && SCOPE.test(scope)
}

/** What a scope means here: each configured namespace and role that it covers. */
export function grantsOf({ namespaces, roles }: Config, scope: string): Grant[] {
  const [namespace = '*', role = '*'] = scope.split(':')
  return namespaces
    .filter((name) => matches(namespace, name))
    .flatMap((name) =>
      roles.filter((one) => matches(role, one)).map((one) => ({ namespace: name, role: one })),
    )
}
