import { type UIEvent, useEffect, useRef, useState } from 'react'
import type { LiveEntry } from '../../../../src/client/events.ts'
import type { AuditEntry } from '../../../../src/client/wire.ts'
import { listOptions, queries, refresh, useRead } from '../../api/queries.ts'
import { useLive } from '../../live/live.ts'
import { type Filters, isAgentName, MOST_FOLLOWED, matches, mergeEntries, queryOf } from './query.ts'

const ROUTE = 'GET /v1/admin/audit'
/** The list is drawn at most this often, however much happens. */
const DRAW_MS = 250
/** Nearer to its beginning than this, in px, the list grows at once. */
const TOP_PX = 24

/** Puts new entries before those that are read, and forgets the oldest, which can be read again. */
function prepend(filters: Filters, news: readonly AuditEntry[]): void {
  queries.setQueryData(listOptions(ROUTE, queryOf(filters)).queryKey, (before) => {
    if (before === undefined) return undefined
    const all = mergeEntries(
      news,
      before.pages.flatMap(({ items }) => items),
    )
    const items = all.slice(0, MOST_FOLLOWED)
    const next = items.length < all.length ? items.at(-1)?.id : before.pages.at(-1)?.next
    return { pages: [{ items, next }], pageParams: [undefined] }
  })
}

/** Leaves the first page, so that reading again asks for no more than that. */
function forgetOlder(filters: Filters): void {
  queries.setQueryData(listOptions(ROUTE, queryOf(filters)).queryKey, (before) =>
    before === undefined
      ? undefined
      : { pages: before.pages.slice(0, 1), pageParams: before.pageParams.slice(0, 1) },
  )
}

/**
 * Adds entries to the list as they are written. While one reads further down they are held back and counted, so that nothing
 * moves; of 10,000 the newest 1,000 are kept.
 */
export function useFollow(filters: Filters, isOn: boolean) {
  const held = useRef<AuditEntry[]>([])
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const isAtTop = useRef(true)
  const [waiting, setWaiting] = useState(0)
  const name = filters.actor
  const actor = useRead(
    'GET /v1/admin/agents/:name',
    { id: name ?? '' },
    { enabled: isOn && isAgentName(name) },
  )
  const show = () => {
    const news = held.current
    held.current = []
    setWaiting(0)
    if (news.length > 0) prepend(filters, news)
  }
  const draw = () => {
    timer.current = undefined
    if (isAtTop.current) show()
    else setWaiting(held.current.length)
  }
  useLive((entry) => {
    // Whoever sees this room sees all of an entry.
    if (!isOn || !isWhole(entry) || !matches(entry, filters, actor.data?.id)) return
    held.current.push(entry)
    if (held.current.length > 2 * MOST_FOLLOWED) held.current = held.current.slice(-MOST_FOLLOWED)
    timer.current ??= setTimeout(draw, DRAW_MS)
  })
  const key = JSON.stringify(queryOf(filters))
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the filters
  useEffect(() => {
    if (!isOn) return undefined
    // What came between the reading of the list and now.
    forgetOlder(filters)
    void refresh(ROUTE)
    return () => {
      clearTimeout(timer.current)
      timer.current = undefined
      held.current = []
      setWaiting(0)
    }
  }, [isOn, key])
  const onScrollCapture = ({ target }: UIEvent) => {
    if (!(target instanceof Element) || target.getAttribute('role') !== 'grid') return
    isAtTop.current = target.scrollTop < TOP_PX
    if (isOn && isAtTop.current && held.current.length > 0) show()
  }
  return { waiting, show, onScrollCapture }
}

function isWhole(entry: LiveEntry): entry is AuditEntry {
  return entry.actor !== undefined
}
