import type { Readable } from 'node:stream'
import type { Placeholder } from '../rules/asked.ts'
import type { PlaceholderSearch } from '../rules/placeholders.ts'
import { Failure } from './failure.ts'
import type { Inbound } from './inbound/inbound.ts'
import { openGate } from './search-encoded.ts'

/** The beginning of a body that was searched before anything of it goes on, and the search of the rest. */
export interface Inspected {
  readonly first: readonly Buffer[]
  /** `first` is all of it. */
  readonly isOver: boolean
  /** Where the rest comes from. */
  readonly rest: Readable
  /** Whether a placeholder ends in this chunk, which must not go on then. */
  search(chunk: Buffer): boolean
}

const FIRST_BYTES = 64 * 1024
const SILENCE_MS = 200

/**
 * Calls `onFound` or `onFault` at most once, instead of settling or later. Bodies that a client announces are asked for. Encoded
 * ones are decoded for the search, and refused where they cannot be.
 */
export function inspectBody(
  inbound: Inbound,
  search: PlaceholderSearch,
  { onFound, onFault }: { onFound(placeholder: Placeholder): void; onFault(failure: Failure): void },
): Promise<Inspected> {
  const encoding = encodingOf(inbound)
  const opened = encoding === '' ? undefined : openGate(encoding, search, { onFound, onFault })
  if (opened === null) throw new Failure('bad_encoding')
  if (inbound.expectsContinue) inbound.sendContinue()
  if (opened !== undefined) {
    opened.takeFrom(inbound.body)
    return firstOf(opened.gate, inbound.body, () => false)
  }
  const open = search.open()
  let hasFound = false
  return firstOf(inbound.body, inbound.body, (chunk) => {
    const found = hasFound ? undefined : open.push(chunk)
    if (found !== undefined) {
      hasFound = true
      onFound(found)
    }
    return hasFound
  })
}

/** Chunks of S3 are signed, and not compressed. */
function encodingOf({ headers }: Inbound): string {
  return headers
    .filter(([name]) => name.toLowerCase() === 'content-encoding')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((one) => one.trim())
    .filter((one) => !['', 'identity', 'aws-chunked'].includes(one))
    .join(',')
}

function firstOf(rest: Readable, body: Readable, search: (chunk: Buffer) => boolean): Promise<Inspected> {
  return new Promise((resolve) => {
    const first: Buffer[] = []
    let length = 0
    const settle = (isOver: boolean) => {
      clearTimeout(silence)
      rest.off('data', take)
      rest.off('end', end)
      body.off('close', stop)
      rest.off('close', stop)
      rest.pause()
      resolve({ first, isOver, rest, search })
    }
    const end = () => settle(true)
    const stop = () => clearTimeout(silence)
    const take = (chunk: Buffer) => {
      if (search(chunk)) {
        stop()
        rest.off('data', take)
        rest.off('end', end)
        return
      }
      first.push(chunk)
      length += chunk.length
      if (length >= FIRST_BYTES) settle(false)
      else silence.refresh()
    }
    const silence = setTimeout(() => settle(false), SILENCE_MS)
    rest.on('data', take)
    rest.once('end', end)
    body.once('close', stop)
    if (rest !== body) rest.once('close', stop)
  })
}
