/** The most that this process, in which the proxy is, took beside what it had, in bytes. */
export async function memoryOf(name: string, work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage.rss()
  const began = performance.now()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 50)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  const seconds = (performance.now() - began) / 1_000
  console.info(`${name}: ${seconds.toFixed(1)} s, ${(most - before) >> 20} MiB more`)
  return most - before
}
