/** Runs `work` when all earlier work under the same key has ended, well or not. Per node. */
export type Serialize = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function createSerialize(): Serialize {
  const last = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }
}
