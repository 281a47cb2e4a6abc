import { useEffect } from 'react'

interface Pages {
  readonly data: readonly unknown[] | undefined
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly isError: boolean
  readonly fetchNextPage: () => Promise<unknown>
}

/** Reads the pages of a listing one after the other, up to `most` items: for lists that are filtered in the page. */
export function useAllPages(list: Pages, most: number): void {
  const { hasNextPage, isFetchingNextPage, isError, fetchNextPage } = list
  const isDue = hasNextPage && !isFetchingNextPage && !isError && (list.data?.length ?? 0) < most
  useEffect(() => {
    if (isDue) void fetchNextPage()
  }, [isDue, fetchNextPage])
}
