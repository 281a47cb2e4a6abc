/**
 * What the work costs this process, in ms of CPU: a bound on that holds also where others have the machine, as one
 * on time by the clock does not.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
