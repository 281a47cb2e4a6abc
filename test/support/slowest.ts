interface Module {
  readonly relativeModuleId: string
  diagnostic(): { readonly duration: number; readonly setupDuration: number }
}

const SHOWN = 25

/** A reporter of vitest: where the time of a whole run has gone. */
export const slowest = {
  onTestRunEnd(modules: readonly Module[]): void {
    if (modules.length < 10 * SHOWN) return
    const spent = modules.map((one) => ({
      file: one.relativeModuleId,
      seconds: one.diagnostic().duration / 1_000,
    }))
    spent.sort((one, other) => other.seconds - one.seconds)
    const all = spent.reduce((sum, { seconds }) => sum + seconds, 0)
    console.log(
      `\nThe slowest of ${spent.length} files, which took ${all.toFixed(0)} s in all workers together:`,
    )
    for (const { file, seconds } of spent.slice(0, SHOWN))
      console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`)
  },
}
