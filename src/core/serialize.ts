/** Work under one key runs alone. Per node. */
export interface Serialize {
  /** Runs `work` when all earlier work under the same key has ended, well or not. */
  <T>(key: string, work: () => Promise<T>): Promise<T>
  /** Runs `work` only if none under the same key is under way: then returns undefined. */
  ifIdle<T>(key: string, work: () => Promise<T>): Promise<T | undefined>
  isBusy(key: string): boolean
}

export function createSerialize(): Serialize {
  const last = new Map<string, Promise<unknown>>()
  async function serialize<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = last.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    last.set(key, mine)
    try {
      return await mine
    } finally {
      if (last.get(key) === mine) last.delete(key)
    }
  }

  return Object.assign(serialize, {
    ifIdle: async <T>(key: string, work: () => Promise<T>) =>
      last.has(key) ? undefined : serialize(key, work),
    isBusy: (key: string) => last.has(key),
  })
}
