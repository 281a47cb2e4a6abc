import type { FastifyReply, FastifyRequest } from 'fastify'
import { DEFAULT_PAGE } from '../domain/limits.ts'

/** The limit of a listing where the caller gave none. */
export function pageLimit(limit: number | undefined): number {
  return limit ?? DEFAULT_PAGE
}

/** Names the next page in `Link` (RFC 8288 §3), keeping the other parameters of the query. */
export function linkNext(reply: FastifyReply, request: FastifyRequest, cursor: string | undefined): void {
  if (cursor === undefined) return
  const url = new URL(request.raw.url ?? '/', 'http://localhost')
  url.searchParams.set('cursor', cursor)
  reply.header('link', `<${url.pathname}${url.search}>; rel="next"`)
}
