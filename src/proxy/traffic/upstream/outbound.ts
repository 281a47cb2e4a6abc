import type { Readable, Writable } from 'node:stream'
import type { Failure } from '../failure.ts'

/** A request to an upstream, over either protocol. */
export interface OutRequest {
  readonly method: string
  /** Origin form. */
  readonly target: string
  /** With `Host`; without headers of a connection. */
  readonly headers: readonly (readonly [string, string])[]
  readonly hasBody: boolean
}

export interface Outbound {
  readonly body: Writable
  /** Names and values in turn. Before the body ends. */
  sendTrailers(trailers: readonly string[]): void
  /** Breaks it: the upstream must not take what was sent for complete. */
  break(code?: number): void
}

export interface Reply {
  readonly status: number
  /** Names and values in turn (latin1), as received, without pseudo-headers. */
  readonly headers: readonly string[]
  readonly body: Readable
  /** Nothing follows the head. */
  readonly isOver: boolean
  /** Once the body has ended. */
  trailers(): readonly string[]
}

export interface OutboundEvents {
  onContinue(): void
  onInform(status: number, headers: readonly string[]): void
  onReply(reply: Reply): void
  /** Nothing comes any more, or what came is not complete. `code`: of RST_STREAM. At most once, and not after the reply's end. */
  onBroken(failure: Failure, code?: number): void
}
