import Type, { type Static } from 'typebox'
import * as Field from '../fields.ts'
import { requireConfig } from '../fields.ts'
import { guardedField, protectionField } from '../kind.ts'
import { matches } from '../named-scopes.ts'

const URL = { minLength: 8, maxLength: 300, pattern: '^ldaps?://[A-Za-z0-9._:\\[\\]-]+$' }
/** A DN as RFC 4514 writes it; the server checks the rest. */
const DN = {
  minLength: 3,
  maxLength: 512,
  pattern: '^[^\\u0000-\\u001f\\u007f]+=[^\\u0000-\\u001f\\u007f]+$',
}
const TLS = {
  default: 'verify-full',
  description: 'verify-full (StartTLS on ldap://), or disable (ldap:// without encryption).',
}

const example = {
  url: 'ldaps://ldap.example.com',
  bind_dn: 'cn=mayfly,dc=example,dc=com',
  bind_password: 'change-me',
  base: 'ou=agents,dc=example,dc=com',
  groups: ['cn=readers,ou=groups,dc=example,dc=com'],
}

export const config = Field.configOf(example, {
  url: Field.upstream('Address: ldaps://host or ldap://host:port.', URL),
  bind_dn: Field.text('DN that Mayfly logs in as.', DN),
  bind_password: Field.secret('Its password.', { minLength: 1, maxLength: 1024 }),
  base: Field.upstream('DN under which entries are created: ou=agents,dc=example,dc=com.', DN),
  groups: Type.Array(Field.text('Group.', DN), {
    maxItems: 64,
    default: [],
    description: 'DNs of the groups that scopes may name, by the value of their first part.',
  }),
  group_attribute: Field.choice(
    ['member', 'uniqueMember', 'memberUid'],
    'Attribute of a group that names its members: member, uniqueMember or memberUid.',
  ),
  tls: Type.Union(
    [Type.Literal('verify-full'), Type.Literal('disable')],
    guardedField(protectionField(TLS), 'verify-full'),
  ),
  ca: Field.ca('PEM of the certificate authority.'),
  local: Field.local('The server is on this machine or in its own network: permits loopback addresses.'),
  local_user: Field.localUser(),
  // Agents send their passwords there.
  connect_url: Type.Optional(Field.protection('Address for agents, where it differs.', URL)),
})
export type Config = Static<typeof config>

/** The value of the first part, which a scope can name. */
const FIRST_VALUE = /^[A-Za-z][A-Za-z0-9.-]*=([A-Za-z0-9._@-]+),/

const nameOf = (dn: string): string | undefined => FIRST_VALUE.exec(dn)?.[1]?.toLowerCase()

/** Checks that the schema cannot express. Throws `BackendError` (`misconfigured`) that names the field. */
export function requireConsistent({ url, connect_url, groups, tls, ca }: Config): void {
  requireConfig(URL_OK(url), '"url" is not an address of the form ldaps://host:port.')
  requireConfig(connect_url === undefined || URL_OK(connect_url), '"connect_url" is not an address.')
  requireConfig(
    tls !== 'disable' || url.startsWith('ldap://'),
    '"tls": "disable" needs an address with ldap://.',
  )
  requireConfig(ca === undefined || tls !== 'disable', '"ca" needs "tls": "verify-full".')
  const names = groups.map(nameOf)
  const odd = groups.find((_, index) => names[index] === undefined)
  requireConfig(
    odd === undefined,
    `"groups" contains "${odd}", whose first part is not a name that a scope can have.`,
  )
  requireConfig(new Set(names).size === names.length, '"groups" contains two groups of the same name.')
}

const URL_OK = (text: string) => globalThis.URL.canParse(text)

/** The DNs that a scope grants: `*` all of them, `<name>` one, `<start>*` those that begin so. Names ignore case, as in LDAP. */
export function groupsOf({ groups }: Pick<Config, 'groups'>, scope: string): string[] {
  const wanted = scope.toLowerCase()
  return groups.filter((dn) => {
    const name = nameOf(dn)
    return name !== undefined && matches(wanted, name)
  })
}
