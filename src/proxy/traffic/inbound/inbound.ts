import type { Readable, Writable } from 'node:stream'
import type { Known } from '../../rules/asked.ts'
import type { Reason } from '../../rules/refusals.ts'

/** Where a connection of a client leads. */
export interface Way {
  /** Canonical `host:port` of the upstream. */
  readonly authority: string
  readonly scheme: 'https' | 'http'
  /** At a base URL. */
  readonly site?: { readonly known: Known; readonly listener: readonly string[]; readonly url: string }
  /** Everything on this connection is refused. */
  readonly refused?: Reason
}

/** A request of a client, over either protocol. */
export interface Inbound {
  readonly method: string
  readonly target: string
  /** As received (latin1), without pseudo-headers. */
  readonly headers: readonly (readonly [string, string])[]
  readonly http2: { readonly authority: string | undefined } | undefined
  readonly body: Readable
  readonly hasBody: boolean
  readonly expectsContinue: boolean
  /** Whether the head of the reply was sent. */
  readonly isAnswered: boolean
  /** Once the body has ended. */
  trailers(): readonly string[]
  sendContinue(): void
  inform(status: number, headers: readonly string[]): void
  /** Names and values in turn. Returns where the body goes; with `isOver` there is none. */
  respond(status: number, headers: readonly string[], isOver: boolean): Writable
  /** Before the body ends. */
  sendTrailers(trailers: readonly string[]): void
  /** Breaks the connection or the stream, so that nobody takes what was sent for complete. */
  break(code?: number): void
  /** After the end of the reply, or when the client has gone. Called once. */
  onClose(listener: (isComplete: boolean) => void): void
}
