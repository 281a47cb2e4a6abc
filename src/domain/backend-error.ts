import type { HealthReason } from './backend-health.ts'

/**
 * `denied`, `misconfigured` and `unsupported` are certain: thrown by `issue`, they mean that NOTHING exists upstream, and
 * nothing is cleaned up. `unavailable` and `timeout` leave that open: Mayfly revokes what `recover` names. They also count
 * as outages for the breaker: an upstream that answers has none, even if it is busy. `unsupported` blames the request, and
 * its message reaches the caller. A refusal of Mayfly's own login, whatever was asked of it, is `denied` with `login: true`:
 * the breaker then spares the upstream more of them. A refusal of one request, account or scope is not.
 */
export type Fault = 'unavailable' | 'timeout' | 'denied' | 'misconfigured' | 'unsupported'

/** A failure upstream. `publicMessage` must be your own words: administrators see it. `detail` goes to the log only. */
export class BackendError extends Error {
  override readonly name = 'BackendError'
  readonly fault: Fault
  readonly detail: string | undefined
  /** The upstream does not accept Mayfly's own login. */
  readonly isLogin: boolean
  /** What administrators are told of an outage, where the code that found it knows more than the fault says. */
  readonly reason: HealthReason | undefined

  constructor(
    fault: Fault,
    publicMessage: string,
    options: { detail?: string; cause?: unknown; login?: boolean; reason?: HealthReason } = {},
  ) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause })
    this.fault = fault
    this.detail = options.detail
    this.isLogin = fault === 'denied' && options.login === true
    this.reason = options.reason
  }
}

const failing =
  (fault: Fault) => (message: string, options?: ConstructorParameters<typeof BackendError>[2]) =>
    new BackendError(fault, message, options)

export const unavailable = failing('unavailable')
export const denied = failing('denied')
export const misconfigured = failing('misconfigured')
export const unsupported = failing('unsupported')
