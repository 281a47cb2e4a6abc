import type { Placeholder } from '../rules/asked.ts'
import type { PlaceholderSearch } from '../rules/placeholders.ts'
import type { Inbound } from './inbound/inbound.ts'

/** The beginning of a body that was searched before anything of it goes on, and the search of the rest. */
export interface Inspected {
  readonly first: readonly Buffer[]
  /** `first` is all of it. */
  readonly isOver: boolean
  /** Whether a placeholder ends in this chunk, which must not go on then. */
  search(chunk: Buffer): boolean
}

const FIRST_BYTES = 64 * 1024
const SILENCE_MS = 200

/** Calls `onFound` at most once, instead of settling or later. Bodies that a client announces are asked for. */
export function inspectBody(
  inbound: Inbound,
  search: PlaceholderSearch,
  onFound: (placeholder: Placeholder) => void,
): Promise<Inspected> {
  if (inbound.expectsContinue) inbound.sendContinue()
  const { body } = inbound
  const open = search.open()
  let hasFound = false
  const searchChunk = (chunk: Buffer) => {
    const found = hasFound ? undefined : open.push(chunk)
    if (found !== undefined) {
      hasFound = true
      onFound(found)
    }
    return hasFound
  }
  return new Promise((resolve) => {
    const first: Buffer[] = []
    let length = 0
    const settle = (isOver: boolean) => {
      clearTimeout(silence)
      body.off('data', take)
      body.off('end', end)
      body.off('close', stop)
      body.pause()
      resolve({ first, isOver, search: searchChunk })
    }
    const end = () => settle(true)
    const stop = () => clearTimeout(silence)
    const take = (chunk: Buffer) => {
      if (searchChunk(chunk)) {
        stop()
        body.off('data', take)
        body.off('end', end)
        return
      }
      first.push(chunk)
      length += chunk.length
      if (length >= FIRST_BYTES) settle(false)
      else silence.refresh()
    }
    const silence = setTimeout(() => settle(false), SILENCE_MS)
    body.on('data', take)
    body.once('end', end)
    body.once('close', stop)
  })
}
