import type { Duplex } from 'node:stream'
import type { MayflyErrorFacts } from '../../client/errors.ts'
import type { IssuedCredential, IssueRequest } from '../../client/wire.ts'
import { parseJson } from '../../domain/formats/json.ts'
import type { Leading, PlaceholderCredential, ProxyEnd, RunningProxy } from '../../proxy/start-proxy.ts'
import type { ProxySettings } from '../../proxy/types.ts'
import type { Failure } from '../frame/failure.ts'

/** What `mayfly run` and its proxy say to each other, one JSON object per line. No secret is in it, in neither direction. */
export type ToProxy =
  | {
      readonly start: {
        readonly run: {
          readonly id: string
          readonly heartbeatMs: number
          /** Whether `mayfly run` began it, beats for it and ends it. */
          readonly isOwn: boolean
          /** Since the last heartbeat that the server has answered. */
          readonly beatenAgoMs: number
        }
        readonly requests: readonly { readonly name: string; readonly request: IssueRequest }[]
        readonly settings: ProxySettings
        /** For the proxy, in the private directory `root`. */
        readonly directory: string
        /** Removed if `mayfly run` is killed. */
        readonly root: string
      }
    }
  /** The environment of the command so far. */
  | { readonly env: Readonly<Record<string, string | undefined>> }
  | { readonly beaten: number }
  | { readonly end: true }

export type FromProxy =
  | { readonly issued: Pick<IssuedCredential, 'id' | 'backend' | 'expires_at'> }
  | { readonly started: readonly PlaceholderCredential[] }
  | { readonly leading: Leading }
  | { readonly failed: Failure }
  /** By the server. */
  | { readonly refused: MayflyErrorFacts }
  | { readonly note: string }
  | { readonly ended: ProxyEnd }
  | { readonly closed: ReturnType<RunningProxy['totals']> }

export interface Channel<Out> {
  send(message: Out): void
  /** Sends what is left, and closes our side. */
  end(): Promise<void>
}

/** An environment has at most 2 MiB on Linux; JSON may take six characters for one. */
const MOST_CHARACTERS = 16 * 1024 * 1024

/** `onMessage` gets what the other end sends, in order; `onClose` comes once, when it has gone. */
export function openChannel<Out, In>(
  socket: Duplex,
  { onMessage, onClose }: { onMessage(message: In): void; onClose(): void },
): Channel<Out> {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MOST_CHARACTERS) socket.destroy()
    for (const line of lines) {
      const message = parseJson(line) as In | undefined
      if (message !== undefined) onMessage(message)
    }
  })
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  socket.once('close', onClose)
  return {
    send: (message) => {
      if (socket.writable) socket.write(`${JSON.stringify(message)}\n`)
    },
    end: () =>
      new Promise((resolve) => {
        if (socket.writable) socket.end(resolve)
        else resolve()
      }),
  }
}
