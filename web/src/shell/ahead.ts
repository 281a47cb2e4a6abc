import { queries, readOptions } from '../api/queries.ts'
import { readKey } from '../api/session.ts'
import { roomOf } from './rooms.ts'

/** What every room waits for, asked for before anything is drawn: who I am, and the code of the room at this address. */
export function lookAhead(): void {
  if (readKey() === null) return
  void queries.prefetchQuery(readOptions('GET /v1/admin/me'))
  // The room says what failed, and tries again.
  roomOf(location.pathname)
    ?.code.load()
    .catch(() => undefined)
}
