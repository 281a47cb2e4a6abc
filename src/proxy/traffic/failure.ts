import type { Placeholder } from '../rules/asked.ts'
import type { Reason } from '../rules/refusals.ts'
import type { Held } from '../types.ts'

/** Why a request is not served. Its message is for our own log, and names nothing of the request. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly reason: Reason
  readonly held: Held | undefined
  readonly misused: Placeholder | undefined
  constructor(
    reason: Reason,
    of: { held?: Held | undefined; misused?: Placeholder | undefined; cause?: unknown } = {},
  ) {
    super(reason, { cause: of.cause })
    this.reason = reason
    this.held = of.held
    this.misused = of.misused
  }
}

/** Whether the request failed because of its address: no byte of it has left, whatever was prepared. */
export function isOfAddress({ reason }: Failure): boolean {
  return reason === 'own_server' || reason === 'address_not_allowed'
}

/** What went wrong with an upstream, where nobody said. */
export function failureOf(error: unknown, reason: Reason): Failure {
  return error instanceof Failure ? error : new Failure(reason, { cause: error })
}
