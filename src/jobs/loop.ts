import type { Log } from '../log/log.ts'

export interface Loop {
  /** Resolves when the current run has ended. */
  stop(): Promise<void>
}

/**
 * Runs the work repeatedly, `pauseMs` after each end, and at once when the work returns that there is more to do. Runs never
 * overlap; a run that fails is followed by the next, and is logged unless the run before it failed, too.
 */
export function startLoop(
  name: string,
  pauseMs: number,
  log: Log,
  work: (signal: AbortSignal) => Promise<boolean | undefined>,
): Loop {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let current: Promise<void> = Promise.resolve()
  let isFailing = false

  async function run(): Promise<void> {
    let more: boolean | undefined = false
    try {
      more = await work(stopping.signal)
      if (isFailing) log.info({ job: name }, 'a job that failed works again')
      isFailing = false
    } catch (error) {
      log[isFailing ? 'debug' : 'error']({ err: error, job: name }, 'a job failed and will be repeated')
      isFailing = true
    }
    if (!stopping.signal.aborted) schedule(more === true ? 0 : pauseMs)
  }

  function schedule(ms: number): void {
    timer = setTimeout(() => {
      current = run()
    }, ms)
  }

  schedule(0)
  return {
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await current
    },
  }
}
