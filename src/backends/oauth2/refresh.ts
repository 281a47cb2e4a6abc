import { hash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'
import type { Server, Token } from './server.ts'

const PAUSE_MS = 50
/** A request takes one at most; the other is for a node that stands still between its claim and its request. */
const CLAIM_TIMEOUTS = 2
/** Those of configurations that were tried or replaced, beside the present one. */
const MAX_KEPT = 8

/** The record of one configured refresh token that was replaced, or that is in use. */
interface Kept {
  /** Which configured one it descends from. */
  readonly of: string
  readonly token: string
  /** The user of the token, and until when nobody else may use it. */
  readonly claim?: { readonly by: string; readonly until: number }
}

/**
 * Uses the refresh token, and keeps the one that replaces it before anybody sees the access token. A server that rotates
 * refresh tokens takes a second use of one for theft and ends the whole sign-in (RFC 9700 §4.14.2), so they are used one after
 * the other, on all nodes. A node that dies meanwhile leaves the old one, which works if the server has not seen it.
 */
export function createRefresh(settings: Config, server: Server, host: Host) {
  const configured = settings.refresh_token ?? ''
  const of = hash('sha256', JSON.stringify([settings.token_endpoint, settings.client_id, configured]))
  /** A record that the store did not take: known to this process alone. */
  let unsaved: { readonly from: string; readonly token: string } | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function read() {
    const text = await host.state.read()
    const all = text === undefined ? [] : (JSON.parse(text) as readonly Kept[])
    const kept: Kept = all.find((one) => one.of === of) ?? { of, token: configured }
    const replace = (next: Kept) => {
      const others = all.filter((one) => one.of !== of)
      // As configured, and used by nobody: nothing to keep.
      const mine = next.token === configured && next.claim === undefined ? [] : [next]
      return host.state.replace(text, JSON.stringify([...mine, ...others].slice(0, MAX_KEPT)))
    }
    return { kept, replace }
  }

  /** Returns the token to use. Nobody else uses it until `keep`, or until no request can be under way any more. */
  async function claim(by: string, signal: AbortSignal): Promise<string> {
    for (;;) {
      signal.throwIfAborted()
      const { kept, replace } = await read()
      if (kept.claim === undefined || kept.claim.until <= host.now()) {
        const token = unsaved?.from === kept.token ? unsaved.token : kept.token
        const until = host.now() + CLAIM_TIMEOUTS * host.timeoutMs
        if (await replace({ of, token, claim: { by, until } })) {
          unsaved = undefined
          return token
        }
      } else await delay(PAUSE_MS, undefined, { signal })
    }
  }

  /** Keeps what came of `from`. A node that has claimed it since, after a long pause of this one, keeps its claim. */
  async function keep(by: string, from: string, token: string): Promise<void> {
    for (;;) {
      const { kept, replace } = await read()
      if (kept.token !== from) return
      const others = kept.claim === undefined || kept.claim.by === by ? {} : { claim: kept.claim }
      if (await replace({ of, token, ...others })) return
    }
  }

  async function useClaimed(form: Form, signal: AbortSignal): Promise<Token> {
    const by = randomUUID()
    const token = await claim(by, signal)
    let next = token
    try {
      // Not stopped by the signal: the reply would be lost, and with it the only refresh token that works.
      const answer = await server.token(withToken(form, token))
      next = answer.refreshToken ?? token
      return answer
    } finally {
      if (next !== token) unsaved = { from: token, token: next }
      await keep(by, token, next)
      unsaved = undefined
    }
  }

  async function useShared(form: Form, signal: AbortSignal): Promise<Token> {
    const { kept, replace } = await read()
    const answer = await server.token(withToken(form, kept.token), signal)
    const next = answer.refreshToken ?? kept.token
    // Of several that come at the same time one is kept: all of them work.
    if (next !== kept.token) await replace({ of, token: next })
    return answer
  }

  return {
    use(form: Form, signal: AbortSignal): Promise<Token> {
      if (settings.refresh_token_reusable) return useShared(form, signal)
      // In line, so that requests of one node do not poll for each other's claims.
      const mine = last.then(() => useClaimed(form, signal))
      last = mine.catch(() => undefined)
      return mine
    },
    /** Resolves when no request is under way. */
    idle: () => last,
  }
}

type Form = Readonly<Record<string, string>>

/** RFC 6749 §6. */
function withToken(form: Form, token: string): Form {
  return { ...form, grant_type: 'refresh_token', refresh_token: token }
}
