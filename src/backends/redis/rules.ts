import { unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'

/** The access comes first: so that every scope which another one covers (`covers`) names no key beyond it. */
const SCOPE = /^(?:\*|script|(?<access>read|write|channel)(?::(?<name>[^*]+\*?|\*))?)$/

/** Every client may ask for these; none reaches a key. */
const CONNECTION =
  '+auth +hello +ping +echo +quit +reset +command +client|id +client|info +client|getname +client|setname +client|reply'
const TRANSACTION = '+multi +exec +discard +watch +unwatch'
/** Of types whose commands name all of their keys, so that the key patterns hold. Modules are left out for that reason. */
const TYPES =
  '+@string +@hash +@list +@set +@sortedset +@stream +@bitmap +@hyperloglog +@geo +exists +touch +type +ttl +pttl +expiretime +pexpiretime +object +dump'
const KEYSPACE = '+del +unlink +expire +pexpire +expireat +pexpireat +persist +rename +renamenx'
/** They show the names of all keys, whatever the patterns say. */
const ALL_KEYS = '+scan +randomkey +dbsize'
const CHANNELS =
  '+subscribe +psubscribe +unsubscribe +punsubscribe +publish +ssubscribe +sunsubscribe +spublish'
/** What a script does is checked like the commands of its caller (Redis, "ACL"); functions belong to everybody. */
const SCRIPTS = '+eval +eval_ro +evalsha +evalsha_ro +script|load +script|exists'

export function isValid(scope: string): boolean {
  return isScope(scope) && SCOPE.test(scope)
}

/**
 * The rules of `ACL SETUSER` (Redis, "ACL rules") that give exactly these scopes, after `reset`. Throws `BackendError`
 * (`unsupported`) for a scope that cannot be narrowed to.
 */
export function rulesFor(scopes: readonly string[]): readonly string[] {
  const patterns = new Set<string>()
  const commands = new Set([CONNECTION])
  const add = (access: string, names: readonly string[]) => {
    if (access === 'channel') commands.add(CHANNELS)
    else commands.add(TRANSACTION).add(TYPES)
    if (access === 'write') commands.add(KEYSPACE)
    if (access !== 'channel' && names.includes('*')) commands.add(ALL_KEYS)
    for (const name of names) patterns.add(`${SIGIL[access]}${name}`)
  }
  for (const scope of scopes) {
    if (!isValid(scope)) throw unsupported('A scope is not of the form read:<prefix>*.')
    if (scope === '*') for (const access of ['write', 'channel']) add(access, ['*'])
    if (scope === '*' || scope === 'script') commands.add(SCRIPTS)
    const { access, name } = SCOPE.exec(scope)?.groups ?? {}
    if (access !== undefined) add(access, globsOf(name))
  }
  const mayWrite = [...patterns].some((pattern) => pattern.startsWith('~'))
  // Key patterns alone keep a reader from writing; without the commands it is told so.
  const without = ['-@admin', '-@dangerous', '-copy', '-move', ...(mayWrite ? [] : ['-@write'])]
  const allowed = [...commands].flatMap((list) => list.split(' '))
  return ['-@all', ...allowed, ...without, ...patterns]
}

const SIGIL: Readonly<Record<string, string>> = { read: '%R~', write: '~', channel: '&' }

/** What the scope covers, as globs of Redis: `a:b` is that key and all below it. No other character has a meaning there. */
function globsOf(name: string | undefined): readonly string[] {
  if (name === undefined) return ['*']
  return name.endsWith('*') ? [name] : [name, `${name}:*`]
}
