import type { Readable, Writable } from 'node:stream'
import { createFlow } from '../flow.ts'
import type { Failure } from './failure.ts'
import type { Inbound } from './inbound/inbound.ts'

/** Reads all of a body. Throws `tooLarge` for a longer one; never settles where the client goes away before its end. */
export function readWhole(inbound: Inbound, most: number, tooLarge: Failure): Promise<Buffer> {
  if (inbound.expectsContinue) inbound.sendContinue()
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    const stop = () => {
      inbound.body.off('data', take)
      inbound.body.off('end', end)
    }
    const take = (part: Buffer) => {
      parts.push(part)
      length += part.length
      if (length <= most) return
      stop()
      inbound.body.pause()
      reject(tooLarge)
    }
    const end = () => {
      stop()
      resolve(Buffer.concat(parts))
    }
    inbound.body.on('data', take)
    inbound.body.on('end', end)
  })
}

export interface PumpEvents {
  /** What goes on in place of it; an empty one: nothing yet. */
  onChunk(chunk: Buffer): Buffer
  /** Before the end is written. Returns what comes before it. */
  onEnd(): Buffer | undefined
}

/** Moves a body as fast as the other side takes it. Returns what stops it. */
export function pump(from: Readable, to: Writable, { onChunk, onEnd }: PumpEvents): () => void {
  const flow = createFlow(from)
  const take = (chunk: Buffer) => {
    const out = onChunk(chunk)
    const isFull = out.length > 0 && !to.write(out)
    if (isFull) to.once('drain', flow.drained)
    flow.passed(chunk.length, isFull)
  }
  const end = () => {
    const last = onEnd()
    if (last === undefined || last.length === 0) to.end()
    else to.end(last)
  }
  from.on('data', take)
  from.once('end', end)
  return () => {
    from.off('data', take)
    from.off('end', end)
    to.off('drain', flow.drained)
    flow.stop()
  }
}
