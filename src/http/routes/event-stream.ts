import { Readable } from 'node:stream'
import type { LiveStream } from '../../core/parts.ts'
import type { AuditEntry } from '../../domain/audit-entry.ts'
import { ID_PREFIX } from '../../domain/ids.ts'
import { presentEntry, presentFacts } from './present-audit.ts'

/** Bytes that wait for a reader; with more, they are dropped, and it is told so once it reads again. */
const MOST_WAITING = 512 * 1_024

/**
 * Server-sent events (HTML, §9.2). Each entry becomes text once for all streams, so that a thousand readers who read nothing hold
 * one copy of it.
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

  function write(place: string, parts: readonly Buffer[]): void {
    if (isEnded || body.destroyed) return
    if (missedTo !== undefined || bytes > MOST_WAITING) {
      waiting = []
      bytes = 0
      missedTo = place
      return
    }
    for (const part of parts) {
      waiting.push(part)
      bytes += part.length
    }
    if (wants) flush()
  }

  // The first byte, so that the headers are sent. Then how soon to come back, in ms.
  body.push('retry: 1000\n\n')
  return {
    body,
    entry: (entry, isWhole, place) => write(place, [placeText(place), textOf(entry, isWhole)]),
    keep: (place) => write(place, [Buffer.from(`: keep\nid: ${ID_PREFIX.audit}${place}\n\n`)]),
    reset: (place) => write(place, [resetText(place)]),
    end() {
      if (isEnded || body.destroyed) return
      isEnded = true
      waiting = []
      flush()
    },
  }
}

const placeText = (place: string) => Buffer.from(`id: ${ID_PREFIX.audit}${place}\n`)
const resetText = (place: string) => Buffer.from(`id: ${ID_PREFIX.audit}${place}\nevent: reset\ndata: {}\n\n`)

const whole = new WeakMap<AuditEntry, Buffer>()
const facts = new WeakMap<AuditEntry, Buffer>()

/** JSON has no line breaks outside of its texts, which escape them: the event is one line. */
function textOf(entry: AuditEntry, isWhole: boolean): Buffer {
  const texts = isWhole ? whole : facts
  const known = texts.get(entry)
  if (known !== undefined) return known
  const data = JSON.stringify(isWhole ? presentEntry(entry) : presentFacts(entry))
  const text = Buffer.from(`event: ${entry.action}\ndata: ${data}\n\n`)
  texts.set(entry, text)
  return text
}
