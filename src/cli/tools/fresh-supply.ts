import type { IssueRequest } from '../../client/wire.ts'
import type { IssuedCredentials } from '../run/issued-credentials.ts'
import { endOf, type HeldCredential, isFresh } from '../session/held-credential.ts'

/** However short the lives are that the server gives, and however often a program asks. */
const LEAST_INTERVAL_MS = 1_000

/** Returns a credential with enough life left, or the old one while no new one can be had. Throws as `client.issue`. */
export type Supply = () => Promise<HeldCredential>

export function freshSupply(
  issued: Pick<IssuedCredentials, 'obtain'>,
  request: IssueRequest,
  renewBeforeMs: number,
  now: () => number,
): Supply {
  let last: HeldCredential | undefined
  let pending: Promise<HeldCredential> | undefined
  let obtainedAt = Number.NEGATIVE_INFINITY
  const obtain = async () => {
    last = (await issued.obtain(request)).credential
    obtainedAt = now()
    return last
  }
  return async () => {
    const isRecent = Math.abs(now() - obtainedAt) < LEAST_INTERVAL_MS
    if (last !== undefined && (isRecent || isFresh(last, now(), renewBeforeMs))) return last
    pending ??= obtain().finally(() => {
      pending = undefined
    })
    try {
      return await pending
    } catch (error) {
      if (last !== undefined && endOf(last) > now()) return last
      throw error
    }
  }
}
