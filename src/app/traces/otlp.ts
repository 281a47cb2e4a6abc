import type { Log } from '../../log/log.ts'

/** A span that has ended. Ids are lower-case hex, times epoch ns. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: keyof typeof KINDS
  readonly begunAt: bigint
  readonly endedAt: bigint
  readonly attributes: Readonly<Record<string, string | number>>
  readonly isError: boolean
}

/** OTLP, `Span.SpanKind`. */
const KINDS = { internal: 1, server: 2, client: 3 } as const
/** OTLP, `Status.StatusCode`: STATUS_CODE_ERROR. */
const ERROR = 2

export const QUEUE = 4_096
const BATCH = 512
const EVERY_MS = 2_000

export interface Exporter {
  add(span: Span): void
  /** Spans that were dropped because the receiver did not take them in time. */
  readonly dropped: number
  /** Sends what is left, once. */
  close(): Promise<void>
}

export interface ExporterParts {
  /** `<base>/v1/traces`. */
  readonly url: string
  readonly version: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly log: Log
}

/**
 * Sends spans by OTLP/HTTP in JSON (OTLP 1.3, "OTLP/HTTP"): a batch every two seconds, or as soon as one is full, one at a time. The queue
 * is bounded: when the receiver is gone, new spans are dropped and counted, and nothing else suffers. Its state is logged when it changes.
 */
export function createExporter({ url, version, fetch, log }: ExporterParts): Exporter {
  let queue: Span[] = []
  let dropped = 0
  let isFailing = false
  let sending: Promise<void> | undefined

  async function sendOne(): Promise<boolean> {
    const batch = queue.slice(0, BATCH)
    try {
      const headers = { 'content-type': 'application/json' }
      const reply = await fetch(url, { method: 'POST', headers, body: bodyOf(batch, version) })
      // What it refuses once it refuses again; 429 and the likes of 503 are asked for again (OTLP/HTTP, "Failures").
      if (reply.status === 429 || reply.status >= 502) throw new Error(`status ${reply.status}`)
      queue = queue.slice(batch.length)
      if (reply.status >= 400) dropped += batch.length
      report(reply.status >= 400 ? `status ${reply.status}` : undefined)
      return true
    } catch (error) {
      report(error instanceof Error ? error.message : 'unknown')
      return false
    }
  }

  function report(fault: string | undefined): void {
    if (fault !== undefined && !isFailing)
      log.warn({ detail: fault }, 'the receiver of traces does not take them')
    if (fault === undefined && isFailing) log.info({ dropped }, 'the receiver of traces takes them again')
    isFailing = fault !== undefined
  }

  async function sendAll(): Promise<void> {
    while (queue.length > 0 && (await sendOne()));
  }

  function send(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = undefined
    })
    return sending
  }

  const timer = setInterval(() => void send(), EVERY_MS).unref()
  return {
    add(span) {
      if (queue.length >= QUEUE) dropped += 1
      else queue.push(span)
      if (queue.length >= BATCH && !isFailing) void send()
    },
    get dropped() {
      return dropped
    },
    async close() {
      clearInterval(timer)
      await sending
      await send()
    },
  }
}

function bodyOf(spans: readonly Span[], version: string): string {
  const resource = { 'service.name': 'mayfly', 'service.version': version }
  const scopeSpans = [{ scope: { name: 'mayfly', version }, spans: spans.map(wireOf) }]
  return JSON.stringify({ resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans }] })
}

/** OTLP, "JSON Protobuf Encoding": ids in hex, 64-bit integers as text. */
function wireOf({ traceId, spanId, parentId, name, kind, begunAt, endedAt, attributes, isError }: Span) {
  return {
    traceId,
    spanId,
    ...(parentId === undefined ? {} : { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: String(begunAt),
    endTimeUnixNano: String(endedAt),
    attributes: attributesOf(attributes),
    status: isError ? { code: ERROR } : {},
  }
}

function attributesOf(given: Span['attributes']) {
  return Object.entries(given).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}
