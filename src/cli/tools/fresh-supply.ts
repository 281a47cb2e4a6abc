import type { IssueRequest } from '../../client/wire.ts'
import type { IssuedCredentials } from '../run/issued-credentials.ts'
import { endOf, type HeldCredential, isFresh } from '../session/held-credential.ts'

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
  const obtain = async () => {
    last = (await issued.obtain(request)).credential
    return last
  }
  return async () => {
    if (last !== undefined && isFresh(last, now(), renewBeforeMs)) return last
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
