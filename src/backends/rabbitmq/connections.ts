import { setTimeout as pause } from 'node:timers/promises'
import { unavailable } from '../../domain/backend-error.ts'
import { isObject } from '../../domain/formats/json.ts'
import { connectionError } from '../../egress/network.ts'
import { type Api, isNotFound, unexpected } from './client.ts'

/** How often we look; a connection whose client does not answer the first request to close is cut by the second. */
const LOOK_MS = 100
/** Longer than a busy broker takes to close what it has been told to close; then the sweeper tries again. */
const PATIENCE_MS = 5_000
/** Releases before 3.10.8 list connections from statistics, by default 5 s old (`collect_statistics_interval`). */
const STATISTICS_MS = 6_000
const PAGE = 500

/**
 * Ends the connections of a user that was deleted, and returns once RabbitMQ has none. It ends them by itself, too, but a login
 * that was under way at that moment enters its list later. Throws `BackendError` where some are left.
 */
export async function endConnections(api: Api, username: string, signal: AbortSignal): Promise<void> {
  const begun = performance.now()
  for (;;) {
    const past = performance.now() - begun
    const left = (await endTracked(api, username, signal)) ?? {
      ...{ isCurrent: past > STATISTICS_MS, count: await endListed(api, username, signal) },
    }
    if (left.count === 0 && left.isCurrent) return
    if (left.isCurrent && past > PATIENCE_MS) {
      throw unavailable('RabbitMQ still has connections of the user.')
    }
    await pause(left.isCurrent ? LOOK_MS : 5 * LOOK_MS, undefined, { signal }).catch((error: unknown) => {
      throw connectionError(error, 'RabbitMQ', signal)
    })
  }
}

/** Since 3.10.8. It asks the table of connections, on all nodes, which is current. `undefined`: this release lacks it. */
async function endTracked(api: Api, username: string, signal: AbortSignal) {
  const path = `/connections/username/${username}`
  const ended = await api.call('DELETE', path, signal, { mayLack: true })
  if (ended.status === 405) return undefined
  if (ended.status !== 204 && !isNotFound(ended)) throw unexpected(ended)
  const { status, items } = await api.call('GET', `${path}?columns=name`, signal)
  if (status !== 200 || items === undefined) throw unexpected({ ...ended, status })
  return { isCurrent: true, count: items.length }
}

/** One after the other. Returns how many there were. */
async function endListed(api: Api, username: string, signal: AbortSignal): Promise<number> {
  const names: string[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const query = `page=${page}&page_size=${PAGE}&columns=name,user&pagination=true`
    const reply = await api.call('GET', `/connections?${query}`, signal)
    const items = reply.body?.['items']
    if (reply.status !== 200 || !Array.isArray(items)) throw unexpected(reply)
    pages = Number(reply.body?.['page_count'] ?? 1)
    const ours = items.filter((item) => isObject(item) && item['user'] === username)
    names.push(...ours.map((item) => String(item['name'])))
  }
  for (const name of names) {
    const reply = await api.call('DELETE', `/connections/${encodeURIComponent(name)}`, signal)
    if (reply.status !== 204 && !isNotFound(reply)) throw unexpected(reply)
  }
  return names.length
}
