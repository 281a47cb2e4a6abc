/** A part of a listing, and where the next begins. */
export interface Page<T> {
  readonly items: readonly T[]
  /** The cursor of the next page; undefined on the last. */
  readonly next: string | undefined
}

/** What a caller asks of a listing: the items after `cursor`, at most `limit`. */
export interface PageQuery {
  readonly cursor?: string | undefined
  readonly limit?: number | undefined
}

/** The first `limit` of these rows. One row too many means that there is another page. */
export function pageOf<T>(rows: readonly T[], limit: number, cursorOf: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : undefined }
}
