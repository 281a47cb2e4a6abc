import type { ReactNode } from 'react'
import { ErrorNote, Skeleton } from './notes.tsx'

interface Props {
  readonly read: { readonly error: unknown; readonly data: unknown; readonly refetch: () => unknown }
  /** Rows may still come although some pages are there; unless given, they do until the first page is. */
  readonly isComing?: boolean
  /** Lines of the shape that stands in for what comes. */
  readonly lines?: number
  readonly isEmpty: boolean
  /** Names the next step. */
  readonly empty?: ReactNode
  /** The rows. */
  readonly children: ReactNode
}

/** A listing: what failed, the shape of what comes, that there is nothing, or its rows. */
export function Listed({
  read,
  isComing = read.data === undefined,
  lines = 10,
  isEmpty,
  empty,
  children,
}: Props) {
  if (read.error !== null)
    return (
      <div className="p-4">
        <ErrorNote error={read.error} retry={() => void read.refetch()} />
      </div>
    )
  if (isComing)
    return (
      <div className="p-4">
        <Skeleton lines={lines} />
      </div>
    )
  return isEmpty ? empty : children
}
