import { isScope } from '../../domain/scope.ts'
import { matches } from '../named-scopes.ts'
import type { Config } from './config.ts'

/** The three permissions of a user in a virtual host: https://www.rabbitmq.com/docs/access-control#authorisation */
const PERMISSIONS = ['configure', 'write', 'read'] as const
type Permission = (typeof PERMISSIONS)[number]

/** What a user may do in one virtual host, as the regular expressions that RabbitMQ stores. */
export interface VhostGrant {
  readonly vhost: string
  readonly permissions: Readonly<Record<Permission, string>>
}

interface Parsed {
  readonly vhost: string
  readonly name: string
  readonly permissions: readonly Permission[]
}

function parse(scope: string): Parsed | undefined {
  const [vhost = '', name = '*', permission = '*', ...rest] = scope.split(':')
  const permissions = PERMISSIONS.filter((one) => permission === '*' || permission === one)
  return permissions.length === 0 || rest.length > 0 ? undefined : { vhost, name, permissions }
}

export function isOurScope(scope: string): boolean {
  return isScope(scope) && parse(scope) !== undefined
}

export function givesAnything({ vhosts }: Config, scope: string): boolean {
  const { vhost } = parse(scope) ?? {}
  return vhost !== undefined && vhosts.some((name) => matches(vhost, name))
}

/** One grant for each configured virtual host that the scopes name. */
export function planGrants({ vhosts }: Config, scopes: readonly string[]): VhostGrant[] {
  const parsed = scopes.map(parse).filter((scope) => scope !== undefined)
  const grants: VhostGrant[] = []
  for (const vhost of new Set(vhosts)) {
    const here = parsed.filter((scope) => matches(scope.vhost, vhost))
    if (here.length === 0) continue
    const expressionOf = (permission: Permission) =>
      expression(here.filter(({ permissions }) => permissions.includes(permission)).map(({ name }) => name))
    const [configure, write, read] = PERMISSIONS.map(expressionOf) as [string, string, string]
    grants.push({ vhost, permissions: { configure, write, read } })
  }
  return grants
}

/**
 * RabbitMQ searches names for the expression, unanchored (rabbit_auth_backend_internal:check_resource_access/4), with PCRE,
 * whose `$` also matches before a final line feed; hence `\A` and `\z`. No name is empty, so `^$` grants nothing.
 */
function expression(names: readonly string[]): string {
  if (names.length === 0) return '^$'
  if (names.includes('*')) return '.*'
  const one = (name: string) => (name.endsWith('*') ? literal(name.slice(0, -1)) : `${literal(name)}\\z`)
  return `\\A(?:${[...new Set(names)].map(one).join('|')})`
}

function literal(text: string): string {
  return text.replace(/[^A-Za-z0-9_]/g, '\\$&')
}
