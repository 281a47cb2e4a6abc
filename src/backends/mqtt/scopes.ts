import { isScope } from '../../domain/scope.ts'

type Permission = 'read' | 'write'

interface Parsed {
  readonly filter: string
  readonly permissions: readonly Permission[]
}

/** One entry of a role's access list; every other topic stays denied. */
export interface Acl {
  readonly acltype: 'publishClientSend' | 'publishClientReceive' | 'subscribePattern'
  readonly topic: string
  readonly priority: number
  readonly allow: boolean
}

/**
 * A persistent session keeps its subscriptions, no matter who resumes it under its client id: without this, a narrow credential would
 * receive what a wide one subscribed to where the broker allows that by default. The plugin asks the highest priority first.
 */
const RECEIVE_NOTHING_ELSE: Acl = { acltype: 'publishClientReceive', topic: '#', priority: -1, allow: false }

const TYPES = {
  write: ['publishClientSend'],
  read: ['subscribePattern', 'publishClientReceive'],
} as const

export function isOurScope(scope: string): boolean {
  return isScope(scope) && parse(scope) !== undefined
}

function parse(scope: string): Parsed | undefined {
  const [topic = '', permission = '*', ...rest] = scope.split(':')
  const permissions = (['read', 'write'] as const).filter((one) => permission === '*' || one === permission)
  const filter = filterOf(topic)
  if (filter === undefined || permissions.length === 0 || rest.length > 0) return undefined
  return { filter, permissions }
}

/**
 * The topic filter (MQTT 5.0, §4.7.1) of a topic: `+` only as a whole level, and `*` only as the last one, which becomes `#`.
 * Neither begins a filter that matches `$SYS` or `$CONTROL` (§4.7.2), and a scope contains no `$`.
 */
function filterOf(topic: string): string | undefined {
  const levels = topic.split('/')
  const last = levels.length - 1
  for (const [index, level] of levels.entries()) {
    if (level.includes('+') && level !== '+') return undefined
    if (level.includes('*') && (level !== '*' || index !== last)) return undefined
  }
  if (levels[last] === '*') levels[last] = '#'
  return levels.join('/')
}

export function aclsOf(scopes: readonly string[]): Acl[] {
  const pairs = scopes.flatMap((scope) => {
    const { filter, permissions } = parse(scope) ?? { filter: '', permissions: [] }
    return permissions.flatMap((permission) => TYPES[permission].map((type) => `${type} ${filter}`))
  })
  const allowed = [...new Set(pairs)].map((pair): Acl => {
    const [acltype, topic] = pair.split(' ') as [Acl['acltype'], string]
    return { acltype, topic, priority: 0, allow: true }
  })
  return [...allowed, RECEIVE_NOTHING_ELSE]
}
