import { writeSync } from 'node:fs'

/** How long a write waits in all for a reader that reads nothing, before lines are dropped. */
const PATIENCE_MS = 1_000
const PAUSE_MS = 10

export interface LineSink {
  /** Never throws, and never waits longer than a second. */
  write(text: string): void
}

/**
 * Writes text to a file descriptor at once. A missing reader neither ends nor delays the server: if the terminal is
 * closed, the pipe broken or the disk full, text is dropped until a write succeeds. `onLost` then gets the number of
 * texts dropped.
 */
export function openLineSink(
  descriptor: number,
  { write = writeSync, onLost = () => {} }: { write?: typeof writeSync; onLost?(count: number): void } = {},
): LineSink {
  let lost = 0
  /** The last text was cut off: the next one begins a line of its own. */
  let isCut = false

  const writeAll = (bytes: Buffer): void => {
    let done = 0
    const until = Date.now() + PATIENCE_MS
    while (done < bytes.length) {
      try {
        done += write(descriptor, bytes, done)
      } catch (error) {
        const isBusy = ['EAGAIN', 'EBUSY', 'EINTR'].includes((error as NodeJS.ErrnoException).code ?? '')
        // After a lost text the reader has had its second: until it reads again, each further text gets one attempt.
        if (isBusy && lost === 0 && Date.now() < until) {
          pause()
          continue
        }
        isCut ||= done > 0
        throw error
      }
    }
    isCut = false
  }

  return {
    write(text) {
      try {
        writeAll(Buffer.from(isCut ? `\n${text}` : text))
      } catch {
        lost++
        return
      }
      if (lost === 0) return
      const count = lost
      lost = 0
      onLost(count)
    },
  }
}

const cell = new Int32Array(new SharedArrayBuffer(4))

function pause(): void {
  Atomics.wait(cell, 0, 0, PAUSE_MS)
}
