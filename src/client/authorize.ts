import { AccessTokens, type TokenCache } from './access-tokens.ts'
import { MayflyError } from './errors.ts'
import { type Auth, logIn, type TokenAnswer, type TokenRequest } from './log-in.ts'
import { type Call, type CallOptions, openStream, type Reply, type Sender, send } from './send.ts'
import type { StreamReply } from './transport.ts'

/** Sends calls with the right `Authorization`. */
export interface Authorizer {
  /** Like `send`. Logs in first if need be, and once more if the server refuses the login or a scope of it. */
  call<T>(call: Call): Promise<Reply<T>>
  /** As `call`, for a reply of any length. */
  stream(call: Call): Promise<StreamReply>
  /** Makes calls log in again once this request for scopes is decided. */
  watchRequest(id: string): Promise<void>
  /** Asks the token endpoint for a token that nothing keeps. */
  requestToken(request: TokenRequest, options?: CallOptions): Promise<TokenAnswer>
}

export function createAuthorizer(
  sender: Sender,
  auth: Auth,
  now: () => number,
  cache: TokenCache | undefined,
): Authorizer {
  const requestToken = (request: TokenRequest, options: CallOptions = {}) =>
    logIn(sender, auth, now, request, options)
  if (auth.kind === 'bearer' || auth.kind === 'none') {
    const authorization = auth.kind === 'none' ? undefined : `Bearer ${headerToken(auth.token)}`
    return {
      call: (call) => send(sender, call, authorization),
      stream: (call) => openStream(sender, call, authorization),
      watchRequest: async () => {},
      requestToken,
    }
  }
  const tokens = new AccessTokens(sender, cache, now, (signal) => requestToken({}, { signal }))
  return {
    requestToken,
    watchRequest: (id) => tokens.watch(id),
    call: <T>(call: Call) => withLogin(tokens, call, (authorization) => send<T>(sender, call, authorization)),
    stream: (call) => withLogin(tokens, call, (authorization) => openStream(sender, call, authorization)),
  }
}

/** A refusal leaves nothing done, so that even a call that is not idempotent may be sent again. */
async function withLogin<R>(
  tokens: AccessTokens,
  call: Call,
  sendWith: (authorization: string) => Promise<R>,
): Promise<R> {
  const first = await tokens.current(call.signal)
  try {
    return await sendWith(`Bearer ${first.token}`)
  } catch (error) {
    if (isScopeRefusal(error)) {
      if (!first.isKept) throw error
      // Without another login, as for a workload whose one token is used up, the refusal of the scope is what matters.
      const more = await tokens.replace(first, 'scopes', call.signal).catch(() => {
        call.signal?.throwIfAborted()
        throw error
      })
      // The server would refuse, and record, the same scopes again.
      if (more.scope === first.scope) throw error
      return sendWith(`Bearer ${more.token}`)
    }
    if (!isLoginRefusal(error)) throw error
    const second = await tokens.replace(first, 'refused', call.signal)
    return sendWith(`Bearer ${second.token}`)
  }
}

const isLoginRefusal = (error: unknown) => error instanceof MayflyError && error.status === 401

/** An access token holds the scopes of its login, without those that the agent was given later. */
const isScopeRefusal = (error: unknown) =>
  error instanceof MayflyError &&
  error.status === 403 &&
  (error.code === 'scope_not_allowed' || error.code === 'insufficient_scope')

/** Checks that a header can carry the token; the error of a transport would show it. Throws `MayflyError`. */
function headerToken(text: string): string {
  const token = text.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  const message = 'The token is empty, or contains a space, a line break or a character that no token has.'
  throw new MayflyError({ code: 'unauthorized', status: 0, message })
}
