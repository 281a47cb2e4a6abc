import { type Readable, Transform } from 'node:stream'
import type { Placeholder } from '../rules/asked.ts'
import type { PlaceholderSearch } from '../rules/placeholders.ts'
import { decodersFor } from './decoders.ts'
import { Failure } from './failure.ts'

export interface Gate {
  /** Gives the encoded bytes as they came, each piece after what it holds was searched. */
  readonly gate: Transform
  takeFrom(body: Readable): void
}

interface OnStop {
  onFound(placeholder: Placeholder): void
  onFault(failure: Failure): void
}

/** Null: the coding is not known, or there are several. */
export function openGate(encoding: string, search: PlaceholderSearch, on: OnStop): Gate | null {
  const decoders = decodersFor(encoding)
  const [decoder] = decoders ?? []
  if (decoder === undefined || decoders?.length !== 1) return null
  const [plain, decoded] = [search.open(), search.open()]
  let source: Readable | undefined
  let isStopped = false
  let isEnding = false
  const stop = (tell: () => void) => {
    if (isStopped) return
    isStopped = true
    // What still comes is not kept.
    source?.unpipe(gate)
    gate.destroy()
    tell()
  }
  const look = (found: Placeholder | undefined) => {
    if (found !== undefined) stop(() => on.onFound(found))
  }
  const unreadable = () => stop(() => on.onFault(new Failure('bad_encoding')))
  const gate = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      look(plain.push(chunk))
      if (isStopped) return
      // The event that tells of an early end comes after this call.
      decoder.write(chunk, () => setImmediate(() => isStopped || done(null, chunk)))
    },
    flush(done) {
      isEnding = true
      decoder.once('end', () => setImmediate(() => isStopped || done()))
      decoder.end()
    },
  })
  gate.once('close', () => decoder.destroy())
  decoder.on('data', (chunk: Buffer) => look(decoded.push(chunk)))
  decoder.on('error', unreadable)
  // Something follows the encoded body that an upstream may read, and nobody has.
  decoder.on('end', () => isEnding || unreadable())
  return {
    gate,
    takeFrom(body) {
      source = body
      body.once('close', () => body.readableEnded || gate.destroy())
      body.pipe(gate)
    },
  }
}
