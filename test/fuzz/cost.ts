/** What one request may take of the thread that serves all of them, in ms of CPU time. */
const MOST_CPU_MS = 50
/** A collection, the compiler, or a neighbour on the machine may fall into one try, not into all. */
const TRIES = 5

export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/**
 * Finds requests that are slow by themselves. CPU time of this thread, which runs the server, too: what other processes take does
 * not count. Requests run at once, so what one takes is counted for all: those that seem slow are repeated alone.
 */
export function createCostCheck() {
  let suspects: { readonly what: string; readonly work: () => Promise<unknown> }[] = []
  return {
    /** Runs one request among others. */
    async watch<T>(what: string, work: () => Promise<T>): Promise<T> {
      const before = cpuMs()
      const result = await work()
      if (cpuMs() - before > MOST_CPU_MS) suspects.push({ what, work })
      return result
    },
    /** Repeats those that seemed slow, with nothing beside them, and returns those that are. */
    async slow(): Promise<string[]> {
      const [repeated, found] = [suspects, [] as string[]]
      suspects = []
      for (const { what, work } of repeated) {
        let least = Number.POSITIVE_INFINITY
        for (let tries = 0; tries < TRIES && least > MOST_CPU_MS; tries += 1) {
          const before = cpuMs()
          await work()
          least = Math.min(least, cpuMs() - before)
        }
        if (least > MOST_CPU_MS) found.push(`${what}: takes ${Math.round(least)} ms of CPU`)
      }
      return found
    },
  }
}
