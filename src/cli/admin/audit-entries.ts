import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '../../client/client.ts'
import { MayflyError, UnreachableError } from '../../client/errors.ts'
import type { AuditEntry, AuditFilter } from '../../client/wire.ts'
import type { Context } from '../frame/verb.ts'

const PAGE = 1000
const POLL_MS = 1_000
/** Ids are in order, but nodes may commit entries slightly out of order. */
const OVERLAP_MS = 10_000
/** Enough for several minutes. */
const MOST_OWN = 1_000

/** The newest `limit` entries, oldest first. */
export async function* readEntries(
  client: Client,
  filter: AuditFilter,
  limit: number,
): AsyncGenerator<readonly AuditEntry[], void, undefined> {
  yield (await newest(client, filter, limit)).reverse()
}

/**
 * Goes on with new entries, each once, until it is interrupted; waits for a server that is down. Leaves out the
 * entries of its own requests (the server records local access), which would never end.
 */
export async function* followEntries(
  { out, signal }: Pick<Context, 'out' | 'signal'>,
  client: Client,
  filter: AuditFilter,
  limit: number,
): AsyncGenerator<readonly AuditEntry[], void, undefined> {
  const base = { ...filter, since: undefined }
  const seen = new Map<string, number>()
  const own = new Set<string>()
  const isNew = ({ id, request_id }: AuditEntry) => !seen.has(id) && !own.has(request_id ?? '')
  // Older entries count as seen. Read them first, so that entries written in between are shown.
  let last = remember(seen, await readLatest(client, base, own))
  const first = await newest(client, filter, limit, own)
  last = remember(seen, first, last)
  yield first.filter(({ request_id }) => !own.has(request_id ?? '')).reverse()
  let isAway = false
  for (;;) {
    await wait(POLL_MS, undefined, { signal })
    const since = last === undefined ? undefined : new Date(last - OVERLAP_MS).toISOString()
    const found = await newest(client, { ...base, since }, Number.POSITIVE_INFINITY, own).catch(
      (error: unknown) => {
        if (!isPassing(error)) throw error
        if (!isAway) out.note(`${error.message} Retrying.`)
        return undefined
      },
    )
    isAway = found === undefined
    const fresh = (found ?? []).filter(isNew).reverse()
    last = remember(seen, found ?? [], last)
    for (const [id, at] of seen) if (at < (last ?? 0) - 2 * OVERLAP_MS) seen.delete(id)
    for (const id of own) if (own.size > MOST_OWN) own.delete(id)
    if (fresh.length > 0) yield fresh
  }
}

/** The newest entry and those shortly before it. */
async function readLatest(client: Client, filter: AuditFilter, own: Set<string>): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  for await (const entry of entriesOf(client, filter, PAGE, own)) {
    const end = entries[0] === undefined ? Number.NEGATIVE_INFINITY : timeOf(entries[0]) - OVERLAP_MS
    if (timeOf(entry) < end) break
    entries.push(entry)
  }
  return entries
}

/** Returns the time of the newest entry. */
function remember(seen: Map<string, number>, entries: readonly AuditEntry[], last?: number) {
  let newestTime = last
  for (const entry of entries) {
    seen.set(entry.id, timeOf(entry))
    newestTime = Math.max(newestTime ?? 0, timeOf(entry))
  }
  return newestTime
}

async function newest(
  client: Client,
  filter: AuditFilter,
  limit: number,
  own?: Set<string>,
): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  if (limit <= 0) return entries
  for await (const entry of entriesOf(client, filter, Math.min(limit, PAGE), own)) {
    entries.push(entry)
    if (entries.length >= limit) break
  }
  return entries
}

/** Newest first. Adds the ids of its requests to `own`. */
async function* entriesOf(client: Client, filter: AuditFilter, limit: number, own?: Set<string>) {
  let cursor: string | undefined
  do {
    const { body, header } = await client.call<readonly AuditEntry[]>({
      method: 'GET',
      path: '/v1/admin/audit',
      query: { ...filter, limit, cursor },
    })
    if (!Array.isArray(body)) throw notOurs()
    const requestId = header('x-request-id')
    if (requestId !== undefined) own?.add(requestId)
    yield* body
    cursor = /[?&]cursor=([0-9a-z]+)[^>]*>; rel="next"/.exec(header('link') ?? '')?.[1]
  } while (cursor !== undefined)
}

const timeOf = (entry: AuditEntry) => Date.parse(entry.timestamp)

const notOurs = () =>
  new MayflyError({
    code: 'unexpected_reply',
    status: 200,
    message: 'The answer is not from a Mayfly server.',
  })

function isPassing(error: unknown): error is Error {
  if (error instanceof UnreachableError) return true
  return error instanceof MayflyError && (error.status === 429 || error.status >= 500)
}
