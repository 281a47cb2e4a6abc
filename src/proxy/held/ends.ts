import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import type { CredentialInfo } from '../../client/wire.ts'
import { unlessAborted } from '../../domain/abort.ts'
import type { ProxyLog } from '../types.ts'
import type { Holding } from './holding.ts'

/** Why credentials have ended, and what follows: after a revocation the run gets no other of that backend. */
export interface Ends {
  revoked(holding: Holding): void
  /** It has ended, and only the server knows whether it was revoked or expired. */
  unclear(holding: Holding, id: string): void
  /** Makes sure that a new credential has not ended before the server could show it. */
  confirm(holding: Holding, id: string): void
  /** Whether the run gets another of this backend. Waits for what is unclear. */
  mayRenew(holding: Holding): Promise<boolean>
  revoke(id: string): void
}

export interface EndsOptions {
  readonly client: Pick<Client, 'credential' | 'revoke'>
  readonly log: ProxyLog
  readonly signal: AbortSignal
}

/** By then the server has shown a new credential; if not, it is asked. */
const CONFIRM_MS = 1_000
const ASK_AGAIN_MS = 1_000

export function createEnds({ client, log, signal }: EndsOptions): Ends {
  const closed = new Set<string>()
  const asking = new Map<string, Promise<unknown>>()

  /** What the server says, as soon as it says something. */
  const ask = async (id: string): Promise<CredentialInfo['status']> => {
    for (;;) {
      const info = await client.credential(id, { signal }).catch(() => undefined)
      if (info !== undefined) return info.status
      await pause(ASK_AGAIN_MS, signal)
    }
  }
  const revoke = (id: string) => void client.revoke(id, { signal }).catch(() => {})
  const revoked = (holding: Holding) => {
    const { name, backend } = holding
    closed.add(backend)
    if (holding.isEnded) return
    log.warn(`the credential of ${name} was revoked: this run gets no other of ${backend}.`)
    for (const id of holding.end(`It was revoked, and this run gets no other of ${backend}.`)) revoke(id)
  }
  const endIfRevoked = async (holding: Holding, id: string) => {
    if ((await ask(id)) === 'revoked') revoked(holding)
  }
  return {
    revoked,
    revoke,
    unclear: (holding, id) => {
      const { backend } = holding
      // The signal ends it.
      const work = Promise.allSettled([asking.get(backend), endIfRevoked(holding, id)])
      asking.set(backend, work)
    },
    confirm: (holding, id) => {
      const confirming = async () => {
        await pause(CONFIRM_MS, signal)
        if (!holding.isEnded && !holding.isSeen(id)) await endIfRevoked(holding, id)
      }
      confirming().catch(() => {})
    },
    mayRenew: async (holding) => {
      await unlessAborted(Promise.resolve(asking.get(holding.backend)), signal)
      return !holding.isEnded && !closed.has(holding.backend)
    },
  }
}
