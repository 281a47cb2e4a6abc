import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'
import type { AuditEntry } from '../../../src/client/wire.ts'
import { leave, readKey } from '../api/session.ts'
import { createParser, type StreamEvent } from './parse.ts'

/**
 * What happens on the server, as it happens: the stream of `GET /v1/admin/events`. One tab of the browser reads it, whichever holds the
 * lock, and tells the others. `fetch` reads it, because an `EventSource` cannot send the header of the session.
 */
const NAME = 'mayfly.events'
const RETRY_MS = [500, 2_000, 5_000, 15_000]

export type LiveState = 'off' | 'connecting' | 'live' | 'refused'
type Message =
  | { readonly type: 'entry'; readonly entry: AuditEntry; readonly id: string | undefined }
  /** Something may have been missed: what is shown is read again. */
  | { readonly type: 'reset'; readonly id: string | undefined }
  /** Nothing has happened, up to there. */
  | { readonly type: 'place'; readonly id: string | undefined }
  | { readonly type: 'state'; readonly state: LiveState }

let state: LiveState = 'off'
let lastId: string | undefined
const channel = new BroadcastChannel(NAME)
const listeners = new Set<(message: Message) => void>()

function take(message: Message): void {
  if (message.type === 'state') state = message.state
  else lastId = message.id ?? lastId
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
  for (let failures = 0; !signal.aborted; failures += 1) {
    share({ type: 'state', state: 'connecting' })
    try {
      const isRefused = await read(signal, () => {
        failures = 0
      })
      if (isRefused) return share({ type: 'state', state: 'refused' })
    } catch {
      if (signal.aborted) return
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]))
  }
}

/** Resolves when the stream has ended; true: this person may not read it. */
async function read(signal: AbortSignal, onOpen: () => void): Promise<boolean> {
  const key = readKey()
  if (key === null) return true
  const reply = await fetch('/v1/admin/events', {
    headers: { 'mayfly-console': key, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
    signal,
  })
  if (reply.status === 401) leave()
  if (reply.status === 401 || reply.status === 403 || reply.status === 404) return true
  if (!reply.ok || reply.body === null) return false
  onOpen()
  share({ type: 'state', state: 'live' })
  const parse = createParser(announce)
  for await (const text of reply.body.pipeThrough(new TextDecoderStream())) parse(text)
  return false
}

function announce({ id, event, data }: StreamEvent): void {
  if (event === 'reset') share({ type: 'reset', id })
  else if (data === undefined) share({ type: 'place', id })
  else share({ type: 'entry', id, entry: JSON.parse(data) as AuditEntry })
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(subscribe, () => state)
}

function subscribe(listener: (message: Message) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls back for each entry of the audit as it is written. */
export function useLive(onEntry: (entry: AuditEntry) => void, onReset?: () => void): void {
  const take = useEffectEvent((message: Message) => {
    if (message.type === 'entry') onEntry(message.entry)
    if (message.type === 'reset') onReset?.()
  })
  useEffect(() => {
    const listener = (message: Message) => take(message)
    return subscribe(listener)
  }, [])
}
