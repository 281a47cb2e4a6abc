import type { Authorizer } from './authorize.ts'
import { MayflyError } from './errors.ts'
import type { PageOptions } from './wire.ts'

type Query = Readonly<Record<string, unknown>>

/** All items of a bare array, page after page by `Link` (RFC 8288). */
export async function* pages<T>(
  authorizer: Authorizer,
  path: string,
  query: Query,
  { limit, signal }: PageOptions,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined
  do {
    const reply = await authorizer.call<readonly T[]>({
      method: 'GET',
      path,
      query: { ...query, limit, cursor },
      signal,
    })
    yield* listOf(reply.body)
    cursor = nextCursor(reply.header('link'))
  } while (cursor !== undefined)
}

/** All entries of `/api/v1/audit`, whose cursor is in the body. */
export async function* entryPages<T>(
  authorizer: Authorizer,
  path: string,
  query: Query,
  { limit, signal }: PageOptions,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined
  do {
    const { body } = await authorizer.call<{ entries: readonly T[]; next_cursor: string | null }>({
      method: 'GET',
      path,
      query: { ...query, limit, cursor },
      signal,
    })
    yield* listOf(body?.entries)
    cursor = body.next_cursor ?? undefined
  } while (cursor !== undefined)
}

/** Only the cursor is taken from it: an address from outside is never followed. */
function nextCursor(link: string | undefined): string | undefined {
  const target = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1]
  if (target === undefined) return undefined
  return new URL(target, 'http://localhost').searchParams.get('cursor') ?? undefined
}

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  if (Array.isArray(value)) return value
  throw new MayflyError({
    code: 'unexpected_reply',
    status: 200,
    message: 'What answered does not look like a Mayfly server.',
  })
}
