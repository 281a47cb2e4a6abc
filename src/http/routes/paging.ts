import type { FastifyReply, FastifyRequest } from 'fastify'
import { nameKey } from '../../domain/agent.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'

/** The requested limit of a listing, or the default. */
export function pageLimit(limit: number | undefined): number {
  return limit ?? DEFAULT_PAGE
}

interface Listing {
  readonly query: { readonly limit?: number }
  readonly reply: FastifyReply
  readonly request: FastifyRequest
}

/** The first page of the items after the cursor; one item too many means that there is another page. */
export function firstPage<T>(call: Listing, rest: readonly T[], keyOf: (item: T) => string): T[] {
  const limit = pageLimit(call.query.limit)
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  if (rest.length > limit && last !== undefined) linkNext(call.reply, call.request, keyOf(last))
  return page
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

/** Adds the next page as `Link` (RFC 8288 §3), with the other query parameters unchanged. */
export function linkNext(reply: FastifyReply, request: FastifyRequest, cursor: string | undefined): void {
  if (cursor === undefined) return
  const url = new URL(request.raw.url ?? '/', 'http://localhost')
  url.searchParams.set('cursor', cursor)
  reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
}
