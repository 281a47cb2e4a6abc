import type { Static } from 'typebox'
import type { DiscoveryReply, TokenReply } from '../api/oauth.ts'
import { type PrivateJwk, signAssertion } from './assertion.ts'
import { MayflyError } from './errors.ts'
import { type Call, type CallOptions, type Reply, type Sender, send } from './send.ts'
import type { AgentStatus } from './wire.ts'

/** Who speaks. `none`: the local host, or a route that is open to all. */
export type Auth =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'client_secret'; readonly clientId: string; readonly clientSecret: string }
  | {
      readonly kind: 'private_key_jwt'
      readonly clientId: string
      readonly privateJwk: PrivateJwk
      /** The issuer of the server; asked of it where absent. */
      readonly issuer?: string | undefined
    }
  | { readonly kind: 'admin_token'; readonly token: string }
  | { readonly kind: 'none' }

export interface AccessToken {
  readonly token: string
  /** Epoch milliseconds. */
  readonly expiresAt: number
  /** From here on another one is asked for. Epoch milliseconds. */
  readonly renewAt: number
  readonly scope: string
  /** Ids of requests for more scopes. Once one of them is decided, another token is asked for, which has what was given. */
  readonly requests?: readonly string[] | undefined
}

/** Where an access token is kept between processes. Neither may throw for a reason of its own. */
export interface TokenCache {
  load(): Promise<AccessToken | undefined>
  /** Undefined: it is no longer good. */
  save(token: AccessToken | undefined): Promise<void>
}

/** What is asked of the token endpoint beyond the default. */
export interface TokenWish {
  readonly scopes?: readonly string[] | undefined
  readonly audience?: string | undefined
}

export type TokenAnswer = Static<typeof TokenReply>

export interface Authorizer {
  /**
   * As `send`, with the right `Authorization`; logs in first where that is needed, and once more when it was refused,
   * be it as a whole or for a scope that has been given to the agent since.
   */
  call<T>(call: Call): Promise<Reply<T>>
  /** Calls log in anew once this request for more scopes is decided, also those of other processes with the same cache. */
  heedDecision(request: string): Promise<void>
  /** A token of its own from the token endpoint, kept nowhere. */
  requestToken(wish: TokenWish, options?: CallOptions): Promise<TokenAnswer>
}

/** How long before its end an access token is renewed, at most a fifth of its life. */
const RENEW_MS = 30_000

export function createAuthorizer(
  sender: Sender,
  auth: Auth,
  now: () => number,
  cache: TokenCache | undefined,
): Authorizer {
  const requestToken = (wish: TokenWish, options: CallOptions = {}) => logIn(sender, auth, now, wish, options)
  if (auth.kind === 'bearer' || auth.kind === 'admin_token' || auth.kind === 'none') {
    const authorization = auth.kind === 'none' ? undefined : `Bearer ${tokenOf(auth.token)}`
    return { call: (call) => send(sender, call, authorization), heedDecision: async () => {}, requestToken }
  }
  let kept: AccessToken | undefined
  let login: Login | undefined
  const obtain = async (renew: boolean, signal: AbortSignal): Promise<Access> => {
    kept ??= await cache?.load()
    let requests: readonly string[] | undefined
    if (!renew && kept !== undefined && kept.renewAt > now()) {
      requests = await stillWaiting(sender, kept, signal)
      if (requests?.length === kept.requests?.length) return { ...kept, isKept: true }
    } else {
      // Another process may have made one since.
      requests = ((await cache?.load()) ?? kept)?.requests
      if (renew) await cache?.save(undefined)
    }
    const askedAt = now()
    const answer = await requestToken({}, { signal })
    const lifeMs = answer.expires_in * 1_000
    const expiresAt = askedAt + lifeMs
    const renewAt = expiresAt - Math.min(RENEW_MS, lifeMs / 5)
    kept = { token: answer.access_token, expiresAt, renewAt, scope: answer.scope, requests }
    await cache?.save(kept)
    return { ...kept, isKept: false }
  }
  /** One login at a time, however many calls wait for it; it ends when none of them does any more. */
  const access = async (signal: AbortSignal | undefined, renew = false): Promise<Access> => {
    const stop = new AbortController()
    login ??= { token: obtain(renew, stop.signal), stop, waiting: 0 }
    const one = login
    one.waiting += 1
    try {
      return await unlessAborted(one.token, signal)
    } finally {
      one.waiting -= 1
      if (one.waiting === 0) {
        if (login === one) login = undefined
        one.stop.abort()
      }
    }
  }
  return {
    requestToken,
    heedDecision: async (request) => {
      const known = (await cache?.load()) ?? kept
      if (known === undefined) return
      kept = { ...known, requests: [...(known.requests ?? []), request] }
      await cache?.save(kept)
    },
    call: async <T>(call: Call) => {
      const first = await access(call.signal)
      try {
        return await send<T>(sender, call, `Bearer ${first.token}`)
      } catch (error) {
        const lacksScope = isScopeRefusal(error)
        if (lacksScope ? !first.isKept : !isLoginRefusal(error)) throw error
        const anew = await access(call.signal, kept?.token === first.token)
        // The same scopes would be refused, and recorded, the same way again.
        if (lacksScope && anew.scope === first.scope) throw error
        return send<T>(sender, call, `Bearer ${anew.token}`)
      }
    },
  }
}

/** Those of its requests that are not decided; all of them where the server does not take the token. */
async function stillWaiting(
  sender: Sender,
  { token, requests }: AccessToken,
  signal: AbortSignal,
): Promise<AccessToken['requests']> {
  if (requests === undefined) return undefined
  try {
    const call = { method: 'GET', path: '/v1/status', signal } as const
    const { pending_requests } = (await send<AgentStatus>(sender, call, `Bearer ${token}`)).body
    const waiting = requests.filter((id) => pending_requests.some((one) => one.id === id))
    return waiting.length === 0 ? undefined : waiting
  } catch (error) {
    // The call itself meets it, too.
    if (error instanceof MayflyError) return requests
    throw error
  }
}

// With either refusal nothing was done, so that even what is not idempotent may be sent once more.

const isLoginRefusal = (error: unknown) => error instanceof MayflyError && error.status === 401

/** An access token has the scopes of its login; those that the agent was given later are not in it. */
const isScopeRefusal = (error: unknown) =>
  error instanceof MayflyError &&
  error.status === 403 &&
  (error.code === 'scope_not_allowed' || error.code === 'insufficient_scope')

/** Throws `MayflyError`: what carries a request would show the whole of a header that it cannot send. */
function tokenOf(text: string): string {
  const token = text.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  const message = 'The token is empty, or holds a blank, a line break or another character that no token has.'
  throw new MayflyError({ code: 'unauthorized', status: 0, message })
}

interface Access extends AccessToken {
  /** From before, and not from a login that was just made for this. */
  readonly isKept: boolean
}

/** One that is under way, and how many calls wait for it. */
interface Login {
  readonly token: Promise<Access>
  readonly stop: AbortController
  waiting: number
}

/** What is waited for, or the reason of the signal where that comes first. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    return await Promise.race([promise, work])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function logIn(
  sender: Sender,
  auth: Auth,
  now: () => number,
  wish: TokenWish,
  options: CallOptions,
): Promise<TokenAnswer> {
  if (auth.kind !== 'client_secret' && auth.kind !== 'private_key_jwt') {
    const message =
      'The token endpoint needs a client secret or an enrolled key; a plain token is not enough.'
    throw new MayflyError({ code: 'invalid_client', status: 0, message })
  }
  const issuer = auth.kind === 'private_key_jwt' ? (auth.issuer ?? (await askIssuer(sender, options))) : ''
  const form = (clock: () => number) => async () => ({
    grant_type: 'client_credentials',
    ...(await proofOf(auth, issuer, clock)),
    ...(wish.scopes === undefined ? {} : { scope: wish.scopes.join(' ') }),
    ...(wish.audience === undefined ? {} : { audience: wish.audience }),
  })
  const ask = async (clock: () => number) => {
    const call = {
      method: 'POST',
      path: '/oauth/token',
      form: form(clock),
      retry: 'always',
      ...options,
    } as const
    return (await send<TokenAnswer>(sender, call)).body
  }
  try {
    return await ask(now)
  } catch (error) {
    const isRefused = error instanceof MayflyError && error.code === 'invalid_client'
    if (!isRefused || auth.kind !== 'private_key_jwt') throw error
    const aheadMs = await clockAhead(sender, now, options)
    if (Math.abs(aheadMs) < CLOCK_MATTERS_MS) throw error
    return ask(() => now() - aheadMs)
  }
}

/** Less than what an assertion bears in either direction. */
const CLOCK_MATTERS_MS = 30_000

/** By how much our clock is ahead of the server's, to a second; 0 where the server does not say. */
async function clockAhead(sender: Sender, now: () => number, { signal }: CallOptions): Promise<number> {
  const reply = await send(sender, { method: 'GET', path: '/health', signal }).catch(() => undefined)
  const time = Date.parse(reply?.header('date') ?? '')
  return Number.isNaN(time) ? 0 : now() - time
}

async function askIssuer(sender: Sender, options: CallOptions): Promise<string> {
  const call = { method: 'GET', path: '/.well-known/openid-configuration', ...options } as const
  return (await send<Static<typeof DiscoveryReply>>(sender, call)).body.issuer
}

async function proofOf(
  auth: Extract<Auth, { clientId: string }>,
  issuer: string,
  now: () => number,
): Promise<Record<string, string>> {
  if (auth.kind === 'client_secret') return { client_id: auth.clientId, client_secret: auth.clientSecret }
  const claims = { clientId: auth.clientId, audience: issuer, nowMs: now() }
  return {
    client_id: auth.clientId,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: await signAssertion(auth.privateJwk, claims),
  }
}
