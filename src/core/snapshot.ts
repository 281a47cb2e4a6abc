/**
 * A value read from the store and cached until it changes there. Concurrent callers share one reading. A caller that has
 * seen a generation never gets a value that had changed by then.
 */
export interface Snapshot<T> {
  at(generation: number): T | Promise<T>
  /** What it was made of on this node has changed: from now on nobody gets a value whose reading began earlier. */
  forget(): void
}

/** `changedAt`: the generation at which the value last changed, as far as this node has heard. */
export function createSnapshot<T>(load: () => Promise<T>, changedAt: () => number): Snapshot<T> {
  let value: T | undefined
  let loadedAt = -1
  let loading: { generation: number; promise: Promise<T> } | undefined
  let era = 0

  async function reload(generation: number): Promise<T> {
    const began = era
    const loaded = await load()
    if (era === began && generation >= loadedAt) {
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
    forget() {
      era += 1
      value = undefined
      loadedAt = -1
      loading = undefined
    },
  }
}
