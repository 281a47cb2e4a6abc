import {
  type InfiniteData,
  infiniteQueryOptions,
  QueryClient,
  queryOptions,
  type UseInfiniteQueryResult,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/react-query'
import { nextCursor, pathOf } from '../../../src/client/paging.ts'
import type { Answer, Route } from '../../../src/client/routes.ts'
import { authorizer, request } from './request.ts'

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      gcTime: 60_000,
      // The client of the interface retries where that is safe.
      retry: false,
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false },
  },
})

/** Routes that only read. */
type Read = Extract<Route, `GET ${string}`>
type Query = Readonly<Record<string, unknown>>
type Item<R extends Read> = Answer<R> extends readonly (infer T)[] ? T : never

export interface Asked {
  /** The part of the path that varies. */
  readonly id?: string
  readonly query?: Query
}

/** What one route answers, by its name: `useRead('GET /v1/admin/agents/:name', { id: 'ci' })`. */
export function readOptions<R extends Read>(route: R, { id, query }: Asked = {}) {
  return queryOptions({
    queryKey: [route, id ?? '', query ?? {}],
    // The row says whether it takes an id; the caller of this file reads the same name.
    queryFn: ({ signal }) => request(route, { id, query, signal } as never) as Promise<Answer<R>>,
  })
}

/** In how many ms it is read again: always, or as what was read says. */
type Again<T> = number | ((data: T | undefined) => number | false)

const againOf = <T>(again: Again<T> | undefined) =>
  typeof again === 'function'
    ? ({ state }: { readonly state: { readonly data: unknown } }) => again(state.data as T | undefined)
    : (again ?? false)

export const useRead = <R extends Read>(
  route: R,
  asked: Asked = {},
  { refetchInterval, ...options }: { enabled?: boolean; refetchInterval?: Again<Answer<R>> } = {},
) =>
  useQuery({
    ...readOptions(route, asked),
    ...options,
    refetchInterval: againOf(refetchInterval),
  })

export const PAGE = 100

interface PageOf<T> {
  readonly items: readonly T[]
  readonly next: string | undefined
}

/** A listing, page by page as one scrolls. */
export function listOptions<R extends Read>(route: R, query: Query = {}, id?: string) {
  return infiniteQueryOptions({
    queryKey: [route, 'list', query, id ?? ''],
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }): Promise<PageOf<Item<R>>> => {
      const reply = await authorizer.call<Item<R>[]>({
        method: 'GET',
        path: pathOf(route, id),
        query: { limit: PAGE, ...query, cursor: pageParam },
        signal,
      })
      return { items: reply.body, next: nextCursor(reply.header('link')) }
    },
    getNextPageParam: ({ next }) => next,
    select: (data: InfiniteData<PageOf<Item<R>>>) => data.pages.flatMap(({ items }) => items),
  })
}

export const useList = <R extends Read>(
  route: R,
  query: Query = {},
  {
    id,
    refetchInterval,
    ...options
  }: {
    /** The part of the path that varies. */
    id?: string
    enabled?: boolean
    refetchInterval?: (rows: readonly Item<R>[]) => number | false
  } = {},
) =>
  useInfiniteQuery({
    ...listOptions(route, query, id),
    ...options,
    refetchInterval: ({ state }) =>
      refetchInterval?.(state.data?.pages.flatMap(({ items }) => items) ?? []) ?? false,
  })

type Pages = Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetching' | 'fetchNextPage'>

/**
 * For `more` of a list: asks for the next page; undefined while there is none, or another request is under way. A list that is drawn
 * twice before it hears of that asks twice, which must not take the first request back.
 */
export const moreOf = ({ hasNextPage, isFetching, fetchNextPage }: Pages): (() => void) | undefined =>
  hasNextPage && !isFetching ? () => void fetchNextPage({ cancelRefetch: false }) : undefined

/** All that was read through these routes is asked for again. */
export async function refresh(...routes: readonly Read[]): Promise<void> {
  await Promise.all(routes.map((route) => queries.invalidateQueries({ queryKey: [route] })))
}
