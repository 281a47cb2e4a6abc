import type { Topic } from './change.ts'

/** With more topics than this, only the time of the latest change is remembered. */
const MAX_TOPICS = 10_000

/** At which generation each topic last changed, as far as this node has heard. */
export interface Changes {
  changedAt(topic: Topic): number
  /** Without a topic, everything has changed. */
  record(generation: number, topic: Topic | undefined): void
}

export function createChanges(): Changes {
  const latest = new Map<Topic, number>()
  let everything = 0
  return {
    changedAt: (topic) => Math.max(everything, latest.get(topic) ?? 0),
    record(generation, topic) {
      if (topic !== undefined && latest.size < MAX_TOPICS) {
        latest.set(topic, generation)
        return
      }
      everything = generation
      latest.clear()
    },
  }
}
