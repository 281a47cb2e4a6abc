import { pause } from './abort.ts'
import { MayflyError } from './errors.ts'
import type { AuditEntry } from './wire.ts'

/**
 * Reads `GET /v1/admin/events`. Whoever calls brings the connection: this works over `fetch` with the headers of a page, too.
 */
export type LiveEvent =
  /** `id`: where to go on after it. Without `admin:audit:read`, some fields are absent. */
  | { readonly kind: 'entry'; readonly id: string; readonly entry: LiveEntry }
  /** The stream has begun, or begun again: what was loaded after this misses nothing. */
  | { readonly kind: 'open'; readonly id: string }
  /** Entries were left out: load again what is shown. */
  | { readonly kind: 'reset'; readonly id: string }

type Facts =
  | 'id'
  | 'timestamp'
  | 'action'
  | 'outcome'
  | 'agent_id'
  | 'agent_name'
  | 'backend'
  | 'credential_id'
export type LiveEntry = Pick<AuditEntry, Facts> & Partial<Omit<AuditEntry, Facts>>

/** Opens the stream after this id. Throws `MayflyError` if the server refuses. */
export type OpenEvents = (
  lastEventId: string | undefined,
  signal: AbortSignal,
) => Promise<ReadableStream<Uint8Array>>

export interface FollowOptions {
  /** An `id` of an event: go on after it. */
  readonly cursor?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The server says something every 15 s. */
const SILENT_MS = 45_000
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
/** No entry is longer. */
const MOST_CHARACTERS = 1 << 20
/** The server may repeat entries around a new connection. */
const REMEMBERED = 4_096

/**
 * Everything that happens, each entry once, over as many connections as it takes. Throws `MayflyError` when the server refuses to
 * go on, because the login has ended, and the reason of the signal.
 */
export async function* followEvents(
  open: OpenEvents,
  { cursor, signal }: FollowOptions = {},
): AsyncGenerator<LiveEvent, void, undefined> {
  const seen = new Set<string>()
  let last = cursor
  let failures = 0
  for (;;) {
    signal?.throwIfAborted()
    const ending = new AbortController()
    const stop = () => ending.abort(signal?.reason)
    signal?.addEventListener('abort', stop, { once: true })
    try {
      let isOpen = false
      for await (const { id, event, data } of readEvents(await open(last, ending.signal))) {
        failures = 0
        if (id !== '') last = id
        if (event === 'reset') yield { kind: 'reset', id }
        else if (data !== '') {
          const entry = JSON.parse(data) as LiveEntry
          if (remember(seen, entry.id)) yield { kind: 'entry', id, entry }
        } else if (!isOpen && id !== '') {
          isOpen = true
          yield { kind: 'open', id }
        }
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (isFinal(error)) throw error
    } finally {
      signal?.removeEventListener('abort', stop)
      ending.abort()
    }
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 10))
    failures += 1
    await pause(wait * (0.5 + Math.random() / 2), signal)
  }
}

/** A refusal that trying again does not change. */
function isFinal(error: unknown): boolean {
  return error instanceof MayflyError && error.status >= 400 && error.status < 500 && error.status !== 429
}

function remember(seen: Set<string>, id: string): boolean {
  if (seen.has(id)) return false
  seen.add(id)
  if (seen.size > REMEMBERED) for (const oldest of seen) return seen.delete(oldest)
  return true
}

export interface ServerEvent {
  /** The last one that was sent; empty: none yet. */
  readonly id: string
  readonly event: string
  /** Empty: only the `id` has moved on. */
  readonly data: string
}

/** The events of one connection (HTML, §9.2.6). Throws `MayflyError` for a stream that is none or falls silent. */
export async function* readEvents(
  stream: ReadableStream<Uint8Array>,
  silentMs = SILENT_MS,
): AsyncGenerator<ServerEvent, void, undefined> {
  let id = ''
  let event = ''
  let data: string[] = []
  let isMeant = false
  for await (const line of linesOf(stream, silentMs)) {
    if (line === '') {
      if (isMeant) yield { id, event: event === '' ? 'message' : event, data: data.join('\n') }
      event = ''
      data = []
      isMeant = false
      continue
    }
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'event') event = value
    else if (name === 'data') data.push(value)
    else continue
    isMeant = true
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>, silentMs: number): AsyncGenerator<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { value } = await within(silentMs, reader.read())
      if (value === undefined) return
      rest += decoder.decode(value, { stream: true })
      if (rest.length > MOST_CHARACTERS) throw unexpected('An event of the stream is too long.')
      const lines = rest.split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      yield* lines
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unexpected('The stream has fallen silent.')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function unexpected(message: string): MayflyError {
  return new MayflyError({ code: 'unexpected_reply', status: 0, message })
}
