/*
 * Which fields of a credential are no secret. Every field that is not named here is taken for one, so a new kind needs no entry.
 */

/** Where to connect: the same in every credential of a backend. */
const CONNECTION: ReadonlySet<string> = new Set([
  'host',
  'hostname',
  'port',
  'database',
  'schema',
  'region',
  'sslmode',
])

/** New in each credential, but not secret: hiding a name would only spoil the output. */
const NAMES: ReadonlySet<string> = new Set(['user', 'username'])

/** Whether the field stays the same when a credential is renewed. */
export function isLastingField(name: string): boolean {
  return CONNECTION.has(name)
}

/** Whether the field may appear in output. */
export function isOpenField(name: string): boolean {
  return CONNECTION.has(name) || NAMES.has(name)
}
