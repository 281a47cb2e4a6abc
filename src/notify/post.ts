import { BackendError } from '../domain/backend-error.ts'
import { NotTaken, type NotTakenReason } from '../domain/notice.ts'
import type { AddressLookup } from '../egress/address.ts'
import { createEgressFetch } from '../egress/fetch.ts'

/** What receivers need of this machine. */
export interface Ways {
  readonly lookup: AddressLookup
  /** The address of this server, which messages name. */
  readonly issuer: string
}

const TIMEOUT_MS = 10_000
const REASONS: Readonly<Record<BackendError['fault'], NotTakenReason>> = {
  timeout: 'timeout',
  unavailable: 'unreachable',
  denied: 'refused',
  misconfigured: 'misconfigured',
  unsupported: 'misconfigured',
}

/** The failure of a connection under the egress rules, as receivers have it. The address may be a secret, and is not named. */
export function notReached(error: unknown): NotTaken {
  if (error instanceof NotTaken) return error
  if (!(error instanceof BackendError)) return new NotTaken('unreachable', String(error), { cause: error })
  return new NotTaken(REASONS[error.fault], error.detail ?? error.message)
}

/**
 * Sends JSON by POST, under the egress rules and without following redirects. A status of 200 to 299 means that it was taken.
 * Throws `NotTaken`. The body is no secret, so it does not matter which account listens on a loopback address.
 */
export function createPost({ lookup }: Ways, local: boolean) {
  const send = createEgressFetch({
    local,
    lookup,
    timeoutMs: TIMEOUT_MS,
    checkListener: async () => undefined,
  })
  return async (
    url: string,
    { body, headers = {} }: { readonly body: string; readonly headers?: Readonly<Record<string, string>> },
    signal: AbortSignal,
  ): Promise<void> => {
    let status: number
    try {
      const reply = await send(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        signal,
      })
      status = reply.status
    } catch (error) {
      throw notReached(error)
    }
    if (status < 200 || status > 299) throw new NotTaken('refused', `status ${status}`)
  }
}
