import type { DatabaseParts, OpenedDatabase } from './parts.ts'

/** Listens for the child on a socket and on a port, and logs in upstream with the credential of the run. */
export async function openDatabase(_parts: DatabaseParts): Promise<OpenedDatabase> {
  throw new Error('not built yet')
}
