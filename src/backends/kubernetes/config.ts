import Type, { type Static } from 'typebox'
import { isScope } from '../../domain/scope.ts'
import { caField, localField, localUserField, requireConfig, requireHttps } from '../fields.ts'
import { guardedField, protectionField, secretField, upstreamField } from '../kind.ts'
import { matches } from '../named-scopes.ts'

/** RFC 1123 label, as names of namespaces are ("Object Names and IDs"). */
const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?'
/** Roles have names that fit into a path ("Object Names and IDs"); these also fit into a scope. */
const ROLE = '[a-z0-9](?:[-a-z0-9.]{0,126}[a-z0-9])?'

export const config = Type.Object(
  {
    server: Type.String(
      upstreamField({
        maxLength: 512,
        pattern: '^https?://[^\\s?#]+$',
        description: 'The API server, https://HOST:6443.',
      }),
    ),
    ca: caField("PEM of the cluster's certificate authority."),
    token: Type.Optional(
      Type.String(secretField({ maxLength: 16_384, description: "Token of Mayfly's own service account." })),
    ),
    client_certificate: Type.Optional(
      Type.String({ maxLength: 32_768, description: 'PEM of a client certificate, instead of the token.' }),
    ),
    client_key: Type.Optional(
      Type.String(secretField({ maxLength: 16_384, description: 'PEM of its private key.' })),
    ),
    // With it, a change of "server" would send the id token elsewhere.
    audience: Type.Optional(
      Type.String(
        guardedField(
          protectionField({
            minLength: 1,
            maxLength: 512,
            description: 'Instead of a token: Mayfly logs in with an id token of its own for this audience.',
          }),
        ),
      ),
    ),
    home: Type.String(
      upstreamField({
        pattern: `^${LABEL}$`,
        default: 'mayfly-agents',
        description: 'Namespace for the service accounts, which should hold nothing else.',
      }),
    ),
    namespaces: Type.Array(Type.String({ pattern: `^${LABEL}$`, description: 'Namespace.' }), {
      minItems: 1,
      maxItems: 64,
      description: 'Namespaces that are granted.',
    }),
    roles: Type.Array(Type.String({ pattern: `^(?:role/)?${ROLE}$`, description: 'Role.' }), {
      minItems: 1,
      maxItems: 32,
      default: ['view'],
      description: 'Cluster roles that are granted in the namespaces; role/NAME is a role of the namespace.',
    }),
    audiences: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
        minItems: 1,
        maxItems: 16,
        description: 'Audiences of the tokens. Default: the API server.',
      }),
    ),
    local: localField('The API server is on this machine or in its own network: permits loopback addresses.'),
    local_user: localUserField(),
  },
  {
    additionalProperties: false,
    examples: [{ server: 'https://k8s.example.com:6443', token: 'change-me', namespaces: ['shop'] }],
  },
)
export type Config = Static<typeof config>

/** Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent(settings: Config): void {
  const { server, local, token, client_certificate: certificate, client_key: key, audience } = settings
  // Whoever may read or change things there could take over the other service accounts.
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
