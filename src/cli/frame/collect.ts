/** All items of a listing, or the first `limit`. */
export async function collect<T>(items: AsyncIterable<T>, limit = Number.POSITIVE_INFINITY): Promise<T[]> {
  const all: T[] = []
  if (limit <= 0) return all
  for await (const item of items) {
    all.push(item)
    if (all.length >= limit) break
  }
  return all
}
