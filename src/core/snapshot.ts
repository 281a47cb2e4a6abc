/**
 * A value read from the store and cached until it changes there. Concurrent callers share one reading. A caller that has
 * seen a generation never gets a value that had changed by then.
 */
export interface Snapshot<T> {
  at(generation: number): T | Promise<T>
}

/** `changedAt`: the generation at which the value last changed, as far as this node has heard. */
export function createSnapshot<T>(load: () => Promise<T>, changedAt: () => number): Snapshot<T> {
  let value: T | undefined
  let loadedAt = -1
  let loading: { generation: number; promise: Promise<T> } | undefined

  async function reload(generation: number): Promise<T> {
    const loaded = await load()
    if (generation >= loadedAt) {
      value = loaded
      loadedAt = generation
    }
    return loaded
  }

  return {
    at(generation) {
      const changed = changedAt()
      if (value !== undefined && loadedAt >= changed) return value
      if (loading !== undefined && loading.generation >= changed) return loading.promise
      const seen = Math.max(generation, changed)
      const promise = reload(seen).finally(() => {
        if (loading?.promise === promise) loading = undefined
      })
      loading = { generation: seen, promise }
      return promise
    },
  }
}
