/**
 * A value read from the store and cached until the generation of the store rises. Concurrent callers share one reading.
 * A caller that has seen generation `g` never gets a value read before `g`.
 */
export interface Snapshot<T> {
  at(generation: number): T | Promise<T>
}

export function createSnapshot<T>(load: () => Promise<T>): Snapshot<T> {
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
      if (value !== undefined && loadedAt >= generation) return value
      if (loading !== undefined && loading.generation >= generation) return loading.promise
      const promise = reload(generation).finally(() => {
        if (loading?.promise === promise) loading = undefined
      })
      loading = { generation, promise }
      return promise
    },
  }
}
