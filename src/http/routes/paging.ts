import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Page, type PageQuery, pageOf } from '../../core/page.ts'
import { nameKey } from '../../domain/agent.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'

interface Call {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

/** As `linked`, of the items after the cursor. */
export function firstPage<T>(
  call: Call & { readonly query: PageQuery },
  rest: readonly T[],
  cursorOf: (item: T) => string,
): readonly T[] {
  return linked(call, pageOf(rest, call.query.limit ?? DEFAULT_PAGE, cursorOf))
}

/** Whether a name comes after the cursor, ignoring case. */
export function isAfter(name: string, cursor: string | undefined): boolean {
  return cursor === undefined || nameKey(name) > nameKey(cursor)
}

export function sortedAfter<T>(
  all: readonly T[],
  cursor: string | undefined,
  keyOf: (item: T) => string,
): T[] {
  return all
    .filter((item) => isAfter(keyOf(item), cursor))
    .sort((a, b) => (nameKey(keyOf(a)) < nameKey(keyOf(b)) ? -1 : 1))
}

/** The items of the page. The next one is in the reply as `Link` (RFC 8288 §3), with the other query parameters unchanged. */
export function linked<T>({ request, reply }: Call, { items, next }: Page<T>): readonly T[] {
  if (next === undefined) return items
  const url = new URL(request.raw.url ?? '/', 'http://localhost')
  url.searchParams.set('cursor', next)
  reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
  return items
}
