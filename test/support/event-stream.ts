import { request } from 'node:http'
import { Readable } from 'node:stream'
import { readEvents, type ServerEvent } from '../../src/client/events.ts'
import type { TestApp } from './app.ts'

export interface OpenStream {
  readonly status: number
  readonly headers: Record<string, unknown>
  /** All that have arrived. */
  readonly events: readonly ServerEvent[]
  /** The entries of those, in their order. */
  entries(): LiveEntry[]
  /** The first event for which this holds, also one that has arrived. */
  next(holds: (event: ServerEvent) => boolean): Promise<ServerEvent>
  /** The entry of the first event of this action. */
  action(action: string): Promise<LiveEntry>
  /** The text of an error. */
  readonly text: string
  /** When the server has ended the stream, by `performance.now()`. */
  readonly ended: Promise<number>
  close(): void
}

// biome-ignore lint/suspicious/noExplicitAny: as the wire has it
export type LiveEntry = Record<string, any>

/** Opens `GET /v1/admin/events`, and resolves once the stream has begun, or was refused. */
export async function openEvents(
  app: TestApp,
  { headers = {}, query = '' }: { headers?: Record<string, string>; query?: string } = {},
): Promise<OpenStream> {
  const { hostname, port, host } = new URL(app.url)
  const outgoing = request({
    hostname,
    port,
    path: `/v1/admin/events${query}`,
    headers: { host, ...headers },
    agent: false,
  })
  outgoing.end()
  const reply = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    outgoing.once('response', resolve)
    outgoing.once('error', reject)
  })
  const events: ServerEvent[] = []
  const waiting = new Set<() => void>()
  let text = ''
  let end = (_: number) => {}
  const ended = new Promise<number>((resolve) => {
    end = resolve
  })
  const close = () => outgoing.destroy()
  const stream: OpenStream = {
    status: reply.statusCode ?? 0,
    headers: reply.headers,
    events,
    entries: () => events.filter(({ data }) => data.startsWith('{"id"')).map(({ data }) => JSON.parse(data)),
    async next(holds) {
      for (;;) {
        const found = events.find(holds)
        if (found !== undefined) return found
        await new Promise<void>((resolve) => waiting.add(resolve))
      }
    },
    action: async (action) => JSON.parse((await stream.next(({ event }) => event === action)).data),
    get text() {
      return text
    },
    ended,
    close,
  }
  if (reply.statusCode !== 200) {
    for await (const chunk of reply) text += chunk
    return stream
  }
  void (async () => {
    try {
      for await (const event of readEvents(Readable.toWeb(reply) as ReadableStream<Uint8Array>)) {
        events.push(event)
        for (const wake of waiting) wake()
        waiting.clear()
      }
    } catch {
      // The test or the server has closed it.
    }
    end(performance.now())
  })()
  await stream.next(({ id }) => id !== '')
  return stream
}
