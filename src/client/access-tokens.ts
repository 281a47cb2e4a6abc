import { unlessAborted } from '../domain/abort.ts'
import { MayflyError } from './errors.ts'
import type { TokenAnswer } from './log-in.ts'
import { type Sender, send } from './send.ts'
import type { AgentStatus } from './wire.ts'

export interface AccessToken {
  readonly token: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
  /** When to get a new one. Epoch milliseconds. */
  readonly renewAt: number
  readonly scope: string
  /** Ids of undecided requests for more scopes. Once one is decided, the client gets a new token, with the new scopes. */
  readonly requests?: readonly string[] | undefined
}

/** Keeps an access token between processes. A cache that fails must not throw. */
export interface TokenCache {
  load(): Promise<AccessToken | undefined>
  /** Undefined: the token is no longer valid. */
  save(token: AccessToken | undefined): Promise<void>
}

/** An access token for one call. */
export interface Access extends AccessToken {
  /** It is from an earlier login, and may lack scopes that the agent has since been given. */
  readonly isKept: boolean
}

/** A token is renewed this long before its end, but at the earliest after four fifths of its life. */
const RENEW_MS = 30_000

/** The access token in an answer of the token endpoint. `askedAt`: epoch ms, by the clock that will renew it. */
export function accessTokenOf(
  { access_token: token, expires_in, scope }: TokenAnswer,
  askedAt: number,
  requests?: AccessToken['requests'],
): AccessToken {
  const lifeMs = expires_in * 1_000
  const expiresAt = askedAt + lifeMs
  return { token, expiresAt, renewAt: expiresAt - Math.min(RENEW_MS, lifeMs / 5), scope, requests }
}

/** Why a call does not take the token that is kept: the server no longer accepts it, or it may lack new scopes. */
type Renewal = 'refused' | 'scopes'

interface Login {
  readonly access: Promise<Access>
  readonly stop: AbortController
  /** How many calls wait for it. */
  waiting: number
}

/** The access token of one agent: kept in memory and in the cache, and renewed in time. */
export class AccessTokens {
  readonly #sender: Sender
  readonly #cache: TokenCache | undefined
  readonly #now: () => number
  readonly #logIn: (signal: AbortSignal) => Promise<TokenAnswer>
  #kept: AccessToken | undefined
  #login: Login | undefined

  constructor(
    sender: Sender,
    cache: TokenCache | undefined,
    now: () => number,
    logIn: (signal: AbortSignal) => Promise<TokenAnswer>,
  ) {
    this.#sender = sender
    this.#cache = cache
    this.#now = now
    this.#logIn = logIn
  }

  /** A token for a call; logs in if there is none, or it is due for renewal. */
  current(signal: AbortSignal | undefined): Promise<Access> {
    return this.#shared(undefined, signal)
  }

  /** A token in place of one that does not do; another call may have replaced it already. */
  replace(old: AccessToken, why: Renewal, signal: AbortSignal | undefined): Promise<Access> {
    return this.#shared(this.#kept?.token === old.token ? why : undefined, signal)
  }

  /** Watches a request for scopes: once it is decided, calls get a new token, in every process with this cache. */
  async watch(request: string): Promise<void> {
    const known = (await this.#cache?.load()) ?? this.#kept
    if (known !== undefined) await this.#keep({ ...known, requests: [...(known.requests ?? []), request] })
  }

  /** All calls share one login. It is aborted when no call waits for it any more. */
  async #shared(renew: Renewal | undefined, signal: AbortSignal | undefined): Promise<Access> {
    if (this.#login === undefined) {
      const stop = new AbortController()
      this.#login = { access: this.#obtain(renew, stop.signal), stop, waiting: 0 }
    }
    const login = this.#login
    login.waiting += 1
    try {
      return await unlessAborted(login.access, signal)
    } finally {
      login.waiting -= 1
      if (login.waiting === 0) {
        if (this.#login === login) this.#login = undefined
        login.stop.abort()
      }
    }
  }

  async #obtain(renew: Renewal | undefined, signal: AbortSignal): Promise<Access> {
    this.#kept ??= await this.#cache?.load()
    const kept = this.#kept
    if (renew === undefined && kept !== undefined && kept.renewAt > this.#now()) {
      const undecided = await this.#undecided(kept, signal)
      if (undecided?.length === kept.requests?.length) return { ...kept, isKept: true }
      return this.#obtainNew(undecided, signal)
    }
    // Another process may have requested scopes since.
    const requests = ((await this.#cache?.load()) ?? kept)?.requests
    if (renew === 'refused') await this.#cache?.save(undefined)
    return this.#obtainNew(requests, signal)
  }

  async #obtainNew(requests: AccessToken['requests'], signal: AbortSignal): Promise<Access> {
    const askedAt = this.#now()
    const answer = await this.#logIn(signal)
    return { ...(await this.#keep(accessTokenOf(answer, askedAt, requests))), isKept: false }
  }

  async #keep(token: AccessToken): Promise<AccessToken> {
    this.#kept = token
    await this.#cache?.save(token)
    return token
  }

  /** The requests that are not decided yet; all of them if the server refuses the token. */
  async #undecided({ token, requests }: AccessToken, signal: AbortSignal): Promise<AccessToken['requests']> {
    if (requests === undefined) return undefined
    try {
      const call = { method: 'GET', path: '/v1/status', signal } as const
      const { pending_requests } = (await send<AgentStatus>(this.#sender, call, `Bearer ${token}`)).body
      const undecided = requests.filter((id) => pending_requests.some((one) => one.id === id))
      return undecided.length === 0 ? undefined : undecided
    } catch (error) {
      // The call itself will meet the same refusal.
      if (error instanceof MayflyError) return requests
      throw error
    }
  }
}
