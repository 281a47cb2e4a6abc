import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'
import { followEvents, type LiveEntry, type LiveEvent } from '../../../src/client/events.ts'
import { authorizer } from '../api/request.ts'

/**
 * What happens on the server, as it happens: the stream of `GET /v1/admin/events`. One tab of the browser reads it, whichever holds the
 * lock, and tells the others.
 */
const NAME = 'mayfly.events'

export type LiveState = 'off' | 'connecting' | 'live' | 'refused'
type Message = LiveEvent | { readonly kind: 'state'; readonly state: LiveState }

let state: LiveState = 'off'
/** Where another tab goes on when this one is closed. */
let last: string | undefined
const channel = new BroadcastChannel(NAME)
const listeners = new Set<(message: Message) => void>()

function take(message: Message): void {
  if (message.kind === 'state') state = message.state
  else last = message.id
  for (const listener of listeners) listener(message)
}
channel.onmessage = ({ data }: MessageEvent<Message>) => take(data)

function share(message: Message): void {
  channel.postMessage(message)
  take(message)
}

/** Reads the stream, or waits until the tab that does is closed. Returns what ends it. */
export function startLive(): () => void {
  const ending = new AbortController()
  navigator.locks
    .request(NAME, { signal: ending.signal }, () => follow(ending.signal))
    .catch((error: unknown) => {
      if (!ending.signal.aborted) throw error
    })
  return () => ending.abort()
}

async function follow(signal: AbortSignal): Promise<void> {
  const open = async (lastId: string | undefined, ending: AbortSignal) => {
    share({ kind: 'state', state: 'connecting' })
    const headers = { accept: 'text/event-stream', ...(lastId && { 'last-event-id': lastId }) }
    const reply = await authorizer.stream({
      method: 'GET',
      path: '/v1/admin/events',
      headers,
      signal: ending,
    })
    share({ kind: 'state', state: 'live' })
    return reply.body
  }
  try {
    for await (const event of followEvents(open, { cursor: last, signal })) share(event)
  } catch (error) {
    if (signal.aborted) throw error
    share({ kind: 'state', state: 'refused' })
  }
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(subscribe, () => state)
}

function subscribe(listener: (message: Message) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls back for each entry of the audit as it is written. Who does not see the audit gets fewer fields. */
export function useLive(onEntry: (entry: LiveEntry) => void, onReset?: () => void): void {
  const take = useEffectEvent((message: Message) => {
    if (message.kind === 'entry') onEntry(message.entry)
    if (message.kind === 'reset') onReset?.()
  })
  useEffect(() => {
    const listener = (message: Message) => take(message)
    return subscribe(listener)
  }, [])
}
