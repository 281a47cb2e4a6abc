import { unlessAborted } from '../domain/abort.ts'

/** Waits. Rejects with the reason of the signal if that aborts first. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return unlessAborted(elapsed, signal).finally(() => clearTimeout(timer))
}
