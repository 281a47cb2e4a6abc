import { setTimeout as sleep } from 'node:timers/promises'

/** What somebody has who is logged in upstream. */
export interface HeldSession {
  /** Resolves once the upstream has closed it. */
  readonly closed: Promise<unknown>
  /** Begins something that does not end by itself. */
  stay(): void
  leave(): void
}

/** How to log in with one credential. */
export interface Door {
  readonly upstream: string
  /** Logs in, and does something. Throws if the upstream lets nobody in. */
  enter(): Promise<HeldSession>
  /** Whether the upstream said that it takes no such login, rather than that something went wrong. */
  isRefusal(error: unknown): boolean
}

/** Epoch ms. */
export interface Refused {
  /** The last session that the holder had. */
  readonly closedAt: number
  /** The last time that it got in. */
  readonly lastLoginAt: number
  /** Since when the upstream has let it do nothing: no session was left, and a login was refused. */
  readonly at: number
}

const PAUSE_MS = 20
/** Sessions that it keeps; others it leaves, so that the upstream has room for everybody. */
const KEPT = 4
/** So long it must have been kept out. */
const QUIET_MS = 500

export interface Holder {
  readonly upstream: string
  /** From now on it logs in again and again. */
  insist(): void
  /** Throws unless it has the session with which it began, and can log in. */
  mustBeIn(): Promise<void>
  /** Resolves once it has been kept out for a while. */
  readonly refused: Promise<Refused>
  stop(): Promise<void>
}

/** Somebody who does not give a credential up: it stays logged in, and keeps logging in. */
export async function startHolder({ upstream, enter, isRefusal }: Door): Promise<Holder> {
  const { promise: refused, resolve } = Promise.withResolvers<Refused>()
  const stopping = new AbortController()
  const kept = new Set<HeldSession>()
  let closedAt = 0
  let lastLoginAt = 0
  let refusedSince: number | undefined

  async function tryToEnter(): Promise<void> {
    try {
      const session = await enter()
      lastLoginAt = Date.now()
      refusedSince = undefined
      if (kept.size < KEPT) keep(session)
      else session.leave()
    } catch (error) {
      if (isRefusal(error)) refusedSince ??= Date.now()
    }
  }
  function keep(session: HeldSession): void {
    kept.add(session)
    session.stay()
    void session.closed.then(() => {
      kept.delete(session)
      closedAt = Date.now()
    })
  }
  async function insist(): Promise<void> {
    while (!stopping.signal.aborted) {
      await tryToEnter()
      const since = Math.max(refusedSince ?? Number.POSITIVE_INFINITY, closedAt)
      if (kept.size === 0 && Date.now() - since > QUIET_MS) {
        resolve({ closedAt, lastLoginAt, at: since })
        return
      }
      await sleep(PAUSE_MS)
    }
  }

  const first = await enter()
  keep(first)
  let insisting: Promise<void> | undefined
  return {
    upstream,
    insist: () => {
      insisting ??= insist()
    },
    async mustBeIn() {
      const another = await enter()
      another.leave()
      if (!kept.has(first)) throw new Error(`${upstream} closed the session of a credential that lives`)
    },
    refused,
    async stop() {
      stopping.abort()
      await insisting
      for (const session of kept) session.leave()
    },
  }
}
