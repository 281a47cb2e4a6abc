import type { Authorizer } from './authorize.ts'
import { MayflyError } from './errors.ts'
import type { Answer, Route } from './routes.ts'
import { pathPart, type Reply } from './send.ts'
import type { AuditEntry, PageOptions } from './wire.ts'

/** Ten million audit entries; a server that has more is asked with `since` and `until`. */
const MAX_PAGES = 10_000
const MAX_PAGE_ITEMS = 1_000

type Query = object

interface Page<T> {
  readonly items: readonly T[] | undefined
  /** Undefined on the last page. */
  readonly cursor: string | undefined
}

type Item<R extends Route> = Answer<R> extends readonly (infer T)[] ? T : never

/** All items of a listing whose pages are arrays, linked by `Link` (RFC 8288). `id`: in the path of the route. */
export function pages<R extends Route>(
  authorizer: Authorizer,
  route: R,
  query: Query,
  options: PageOptions,
  id?: string,
): AsyncGenerator<Item<R>, void, undefined> {
  return walk<readonly Item<R>[], Item<R>>(authorizer, pathOf(route, id), query, options, (reply) => ({
    items: reply.body,
    cursor: nextCursor(reply.header('link')),
  }))
}

/** The audit, whose cursor is in the body. */
export function entryPages(authorizer: Authorizer, query: Query, options: PageOptions) {
  const route = 'GET /api/v1/audit'
  return walk<Answer<typeof route> | undefined, AuditEntry>(
    authorizer,
    pathOf(route),
    query,
    options,
    ({ body }) => ({
      items: body?.entries,
      cursor: body?.next_cursor ?? undefined,
    }),
  )
}

/** `id`: the one part of the path that varies. */
export function pathOf(route: Route, id?: string): string {
  const path = route.slice('GET '.length)
  return id === undefined ? path : path.replace(/:\w+/, () => pathPart(id))
}

async function* walk<B, T>(
  authorizer: Authorizer,
  path: string,
  query: Query,
  { limit, signal }: PageOptions,
  read: (reply: Reply<B>) => Page<T>,
): AsyncGenerator<T, void, undefined> {
  const cursors = new Set<string>()
  let cursor: string | undefined
  do {
    const reply = await authorizer.call<B>({
      method: 'GET',
      path,
      query: { ...query, limit, cursor },
      signal,
    })
    const page = read(reply)
    yield* listOf(page.items)
    cursor = page.cursor
    if (cursor === undefined) return
    if (cursors.has(cursor) || cursors.size >= MAX_PAGES) throw endless()
    cursors.add(cursor)
  } while (true)
}

function endless(): MayflyError {
  return new MayflyError({ code: 'unexpected_reply', status: 200, message: 'The listing does not end.' })
}

/** Reads the cursor alone: the client never follows an address that it was sent. */
export function nextCursor(link: string | undefined): string | undefined {
  const target = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1]
  if (target === undefined) return undefined
  return new URL(target, 'http://localhost').searchParams.get('cursor') ?? undefined
}

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  if (Array.isArray(value) && value.length <= MAX_PAGE_ITEMS) return value
  throw new MayflyError({
    code: 'unexpected_reply',
    status: 200,
    message: 'The answer is not from a Mayfly server.',
  })
}
