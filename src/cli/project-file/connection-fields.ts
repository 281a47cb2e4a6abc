/**
 * Fields that say where to connect: the same in every credential of a backend, and not secret. Every other field is
 * taken for a secret that changes with each credential, so a new kind needs no entry here.
 */
const CONNECTION = new Set(['host', 'hostname', 'port', 'database', 'schema', 'region', 'sslmode'])

/** New in each credential, but not secret: redacting a name would only spoil the output. */
const NAMES = new Set(['user', 'username'])

/** Whether the field stays the same when a credential is renewed. */
export function isLastingField(name: string): boolean {
  return CONNECTION.has(name)
}

/** Whether the field may appear in output. */
export function isOpenField(name: string): boolean {
  return CONNECTION.has(name) || NAMES.has(name)
}
