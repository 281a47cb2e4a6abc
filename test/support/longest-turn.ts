import { setImmediate } from 'node:timers/promises'

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/**
 * Runs `work` and returns the longest turn of this thread's event loop meanwhile: what a request that arrives at the worst moment
 * waits for. Counts CPU time in ms, so that other processes on a busy machine do not count.
 */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let isDone = false
  let most = 0
  const watch = async () => {
    for (let last = cpuMs(); !isDone; ) {
      await setImmediate()
      const now = cpuMs()
      most = Math.max(most, now - last)
      last = now
    }
  }
  const watching = watch()
  try {
    await work()
  } finally {
    isDone = true
    await watching
  }
  return most
}
