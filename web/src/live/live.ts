import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'
import { followEvents, type LiveEntry, type OpenEvents } from '../../../src/client/events.ts'
import { authorizer } from '../api/request.ts'

/**
 * What happens on the server, as it happens: the stream of `GET /v1/admin/events`. One tab of the browser reads it, whichever holds the
 * lock, and tells the others. `fetch` reads it, because an `EventSource` cannot send the header of the session.
 */
const NAME = 'mayfly.events'

export type LiveState = 'off' | 'connecting' | 'live' | 'refused'
type Message =
  | { readonly type: 'entry'; readonly entry: LiveEntry; readonly id: string }
  /** Something may have been missed: what is shown is read again. */
  | { readonly type: 'reset' }
  /** `id`: where the stream is. */
  | { readonly type: 'state'; readonly state: LiveState; readonly id?: string | undefined }
  /** A tab was opened, and does not know how things stand. */
  | { readonly type: 'question' }

let state: LiveState = 'off'
/** Where to go on, for the tab that reads next. */
let lastId: string | undefined
let isReading = false
const channel = new BroadcastChannel(NAME)
const listeners = new Set<(message: Message) => void>()

function take(message: Message): void {
  if (message.type === 'state') {
    state = message.state
    lastId = message.id ?? lastId
  }
  if (message.type === 'entry') lastId = message.id
  for (const listener of listeners) listener(message)
}
channel.onmessage = ({ data }: MessageEvent<Message>) => {
  if (data.type !== 'question') take(data)
  else if (isReading) channel.postMessage({ type: 'state', state, id: lastId } satisfies Message)
}

function share(message: Message): void {
  channel.postMessage(message)
  take(message)
}

/** Reads the stream, or waits until the tab that does is closed. Returns what ends it. */
export function startLive(): () => void {
  const ending = new AbortController()
  channel.postMessage({ type: 'question' } satisfies Message)
  navigator.locks
    .request(NAME, { signal: ending.signal }, () => follow(ending.signal))
    .catch((error: unknown) => {
      if (!ending.signal.aborted) throw error
    })
  return () => ending.abort()
}

async function follow(signal: AbortSignal): Promise<void> {
  isReading = true
  try {
    for await (const event of followEvents(open, { cursor: lastId, signal })) {
      if (event.kind === 'open') share({ type: 'state', state: 'live', id: event.id })
      if (event.kind === 'entry') share({ type: 'entry', id: event.id, entry: event.entry })
      if (event.kind === 'reset') share({ type: 'reset' })
    }
  } catch {
    if (signal.aborted) return
    share({ type: 'state', state: 'refused' })
  } finally {
    isReading = false
  }
}

const open: OpenEvents = async (after, signal) => {
  share({ type: 'state', state: 'connecting' })
  const headers = {
    accept: 'text/event-stream',
    ...(after === undefined ? {} : { 'last-event-id': after }),
  }
  const { body } = await authorizer.stream({ method: 'GET', path: '/v1/admin/events', headers, signal })
  share({ type: 'state', state: 'live' })
  return body
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(subscribe, () => state)
}

function subscribe(listener: (message: Message) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls back for each entry of the audit as it is written, and when some may have been missed. */
export function useLive(onEntry: (entry: LiveEntry) => void, onReset?: () => void): void {
  const tell = useEffectEvent((message: Message) => {
    if (message.type === 'entry') onEntry(message.entry)
    if (message.type === 'reset') onReset?.()
  })
  useEffect(() => subscribe((message) => tell(message)), [])
}
