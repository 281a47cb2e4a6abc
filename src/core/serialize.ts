const queues = new WeakMap<object, Map<string, Promise<unknown>>>()

/** Runs `work` when all that was given before under this key of this owner has ended, well or not. */
export async function serialize<T>(owner: object, key: string, work: () => Promise<T>): Promise<T> {
  let turns = queues.get(owner)
  if (turns === undefined) {
    turns = new Map()
    queues.set(owner, turns)
  }
  const before = turns.get(key) ?? Promise.resolve()
  const mine = before.then(work, work)
  turns.set(key, mine)
  try {
    return await mine
  } finally {
    if (turns.get(key) === mine) turns.delete(key)
  }
}
