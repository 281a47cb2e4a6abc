import type { Readable } from 'node:stream'

/** Lets a source flow, unless its target is full or the others have their turn. */
export interface Flow {
  /** These bytes were passed on. `isFull`: the target wants no more until it drains. */
  passed(bytes: number, isFull: boolean): void
  drained(): void
  /** The source is somebody else's from now on. */
  stop(): void
}

/**
 * The bytes that all sources together pass on in one turn of the event loop. Then each source that has more waits for the next turn.
 * Node alone reads up to 2 MB from each socket: beside some thirty busy ones, a new connection waits for half a second.
 */
const TURN_BYTES = 512 * 1024

let inTurn = 0
const beginTurn = () => {
  inTurn = 0
}

export function createFlow(from: Readable): Flow {
  let isFull = false
  let resting: NodeJS.Immediate | undefined
  const goOn = () => {
    if (!isFull && resting === undefined) from.resume()
  }
  const rest = () => {
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
      if (inTurn === 0) setImmediate(beginTurn)
      inTurn += bytes
      if (inTurn >= TURN_BYTES) rest()
    },
    drained: () => {
      isFull = false
      goOn()
    },
    stop: () => clearImmediate(resting),
  }
}
