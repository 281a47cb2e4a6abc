import type { Readable } from 'node:stream'

/** Lets a source flow, unless its target is full or the others have their turn. */
export interface Flow {
  /** So much went on. `isFull`: and the target wants no more until it says so. */
  passed(bytes: number, isFull: boolean): void
  drained(): void
  /** The source is somebody else's from now on. */
  stop(): void
}

/**
 * After so much, a source lets the others have their turn. Node alone reads up to 2 MB from one socket before it looks at the next:
 * beside some thirty busy ones, a new connection waits for half a second.
 */
const REST_BYTES = 256 * 1024

export function createFlow(from: Readable): Flow {
  let isFull = false
  let resting: NodeJS.Immediate | undefined
  let sinceRest = 0
  const goOn = () => {
    if (!isFull && resting === undefined) from.resume()
  }
  const rest = () => {
    sinceRest = 0
    from.pause()
    resting ??= setImmediate(() => {
      resting = undefined
      goOn()
    })
  }
  return {
    passed: (bytes, isNowFull) => {
      if (isNowFull) {
        isFull = true
        from.pause()
      }
      sinceRest += bytes
      if (sinceRest >= REST_BYTES) rest()
    },
    drained: () => {
      isFull = false
      goOn()
    },
    stop: () => clearImmediate(resting),
  }
}
