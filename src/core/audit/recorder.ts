const WINDOW_MS = 60_000
const MAX_KEYS = 10_000

interface Seen<T> {
  readonly since: number
  readonly what: T
  /** The entry of the first. */
  readonly written: Promise<void>
  /** Repetitions since then. A kill of the process loses this number, and nothing else (ADR 0032). */
  repeated: number
}

interface Writing<T> {
  now(): number
  write(what: T, repeated: number): Promise<void>
  /** A number could not be written and is kept. Absent where `write` does not throw. */
  onKept?(error: unknown): void
}

export interface Recorder<T> {
  /** Resolves when the first event of this minute is written. If `write` throws, throws the same and counts nothing. */
  record(key: string, what: T): Promise<void>
  /** Writes the numbers of the minutes that have ended. */
  flush(now: number): Promise<void>
}

/** Writes the first event under a key at once, and then, each minute, the number of its repetitions. */
export function createRecorder<T>({ now, write, onKept }: Writing<T>): Recorder<T> {
  const seen = new Map<string, Seen<T>>()

  async function summarise(key: string, one: Seen<T>): Promise<void> {
    seen.delete(key)
    if (one.repeated === 0) return
    try {
      await write(one.what, one.repeated)
    } catch (error) {
      onKept?.(error)
      // For the next flush, or the next of its kind.
      const newer = seen.get(key)
      if (newer === undefined) seen.set(key, one)
      else newer.repeated += one.repeated
    }
  }

  /** Makes room; the number of the oldest is still written. */
  function dropOldest(): void {
    for (const [key, one] of seen) {
      void summarise(key, one)
      return
    }
  }

  return {
    async record(key, what) {
      const since = now()
      const known = seen.get(key)
      if (known !== undefined && isWithinWindow(known, since)) {
        known.repeated += 1
        // Those at the same time as the first wait for its entry, too.
        return known.written
      }
      if (seen.size >= MAX_KEYS && known === undefined) dropOldest()
      const written = write(what, known?.repeated ?? 0)
      seen.set(key, { since, what, written, repeated: 0 })
      try {
        await written
      } catch (error) {
        if (known === undefined) seen.delete(key)
        else seen.set(key, known)
        throw error
      }
    },
    async flush(until) {
      for (const [key, one] of [...seen]) if (!isWithinWindow(one, until)) await summarise(key, one)
    },
  }
}

/** Not after the clock was set back: the summary would wait for the old time to return. */
function isWithinWindow({ since }: { readonly since: number }, now: number): boolean {
  return now >= since && now - since < WINDOW_MS
}
