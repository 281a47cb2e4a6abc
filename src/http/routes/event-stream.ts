import { Readable } from 'node:stream'
import type { LiveStream, PlacedEntry } from '../../core/parts.ts'
import { ID_PREFIX } from '../../domain/ids.ts'
import { presentEntry, presentFacts } from './present-audit.ts'

/** Bytes that wait for a reader; with more, they are dropped, and it is told so once it reads again. */
const MOST_WAITING = 512 * 1_024

/**
 * Server-sent events (HTML, §9.2). What many streams are told becomes text once, so that a thousand readers who read
 * nothing hold one copy of it.
 */
export interface EventStream extends LiveStream {
  readonly body: Readable
}

export function createEventStream(): EventStream {
  let waiting: Buffer[] = []
  let bytes = 0
  /** Where the reader goes on that has missed something. */
  let missedTo: string | undefined
  let isEnded = false
  let wants = true

  const body = new Readable({
    read() {
      wants = true
      flush()
    },
  })

  function flush(): void {
    let sent = 0
    while (wants && sent < waiting.length) {
      wants = body.push(waiting[sent])
      bytes -= waiting[sent]?.length ?? 0
      sent += 1
    }
    waiting = waiting.slice(sent)
    if (wants && missedTo !== undefined) {
      const text = resetText(missedTo)
      missedTo = undefined
      wants = body.push(text)
    }
    if (isEnded && waiting.length === 0) body.push(null)
  }

  function write(place: string, text: Buffer): void {
    if (isEnded || body.destroyed) return
    if (missedTo !== undefined || bytes > MOST_WAITING) {
      waiting = []
      bytes = 0
      missedTo = place
      return
    }
    waiting.push(text)
    bytes += text.length
    if (wants) flush()
  }

  // The first byte, so that the headers are sent. Then how soon to come back, in ms.
  body.push('retry: 1000\n\n')
  return {
    body,
    entries: (placed, isWhole) => write(placed.at(-1)?.place ?? '', textOf(placed, isWhole)),
    keep: (place) => write(place, Buffer.from(`: keep\n${placeText(place)}\n`)),
    reset: (place) => write(place, resetText(place)),
    end() {
      if (isEnded || body.destroyed) return
      isEnded = true
      waiting = []
      flush()
    },
  }
}

const placeText = (place: string) => `id: ${ID_PREFIX.audit}${place}\n`
const resetText = (place: string) => Buffer.from(`${placeText(place)}event: reset\ndata: {}\n\n`)

const whole = new WeakMap<readonly PlacedEntry[], Buffer>()
const facts = new WeakMap<readonly PlacedEntry[], Buffer>()

/** JSON has no line breaks outside of its texts, which escape them: the data of an event is one line. */
function textOf(placed: readonly PlacedEntry[], isWhole: boolean): Buffer {
  const texts = isWhole ? whole : facts
  const known = texts.get(placed)
  if (known !== undefined) return known
  const events = placed.map(({ entry, place }) => {
    const data = JSON.stringify(isWhole ? presentEntry(entry) : presentFacts(entry))
    return `${placeText(place)}event: ${entry.action}\ndata: ${data}\n\n`
  })
  const text = Buffer.from(events.join(''))
  texts.set(placed, text)
  return text
}
