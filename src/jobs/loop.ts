import type { Log } from '../log/log.ts'

export interface Loop {
  /** Resolves when the turn under way has ended. */
  stop(): Promise<void>
}

/**
 * Does the work again and again, `pauseMs` after each end: never two turns at once, and a turn that fails is
 * logged and followed by the next. The work says whether there is more to do at once.
 */
export function startLoop(
  name: string,
  pauseMs: number,
  log: Log,
  work: (signal: AbortSignal) => Promise<boolean | undefined>,
): Loop {
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let turn: Promise<void> = Promise.resolve()

  async function run(): Promise<void> {
    let more: boolean | undefined = false
    try {
      more = await work(stopping.signal)
    } catch (error) {
      log.error({ err: error, job: name }, 'a job failed; it goes on')
    }
    if (!stopping.signal.aborted) schedule(more === true ? 0 : pauseMs)
  }

  function schedule(ms: number): void {
    timer = setTimeout(() => {
      turn = run()
    }, ms)
  }

  schedule(0)
  return {
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await turn
    },
  }
}
