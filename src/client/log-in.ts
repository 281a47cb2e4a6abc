import type { Static } from 'typebox'
import type { TokenReply } from '../api/oauth.ts'
import { type PrivateJwk, signAssertion } from './assertion.ts'
import { MayflyError } from './errors.ts'
import { isSameAddress } from './same-address.ts'
import { type CallOptions, type Sender, send } from './send.ts'
import type { Discovery } from './wire.ts'

/** How the client authenticates. `none`: as the local host, or on routes that are open to all. */
export type Auth =
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'client_secret'; readonly clientId: string; readonly clientSecret: string }
  | {
      readonly kind: 'private_key_jwt'
      readonly clientId: string
      readonly privateJwk: PrivateJwk
      /** The issuer of the server. If absent, the client asks the server, whose issuer must be its address. */
      readonly issuer?: string | undefined
    }
  | {
      /** A workload shows a token that somebody else signed, and keeps no secret of the server. */
      readonly kind: 'identity'
      /** A JWT for this server. Called for each request for an access token, because a JWT may be good once. */
      readonly token: (options: CallOptions) => Promise<string>
    }
  | { readonly kind: 'none' }

type ProvingAuth = Extract<Auth, { kind: 'client_secret' | 'private_key_jwt' | 'identity' }>

/** What to ask the token endpoint for; by default all scopes, for this server. */
export interface TokenRequest {
  readonly scopes?: readonly string[] | undefined
  readonly audience?: string | undefined
}

export type TokenAnswer = Static<typeof TokenReply>

/** Less than the skew that the server accepts in an assertion. */
const TOLERATED_SKEW_MS = 30_000

/** Asks the token endpoint for an access token. Retries an assertion by the server's clock if ours is wrong. */
export async function logIn(
  sender: Sender,
  auth: Auth,
  now: () => number,
  request: TokenRequest,
  options: CallOptions,
): Promise<TokenAnswer> {
  if (auth.kind === 'bearer' || auth.kind === 'none') {
    const message =
      'The token endpoint needs a client secret, an enrolled key or an identity; a plain token is not enough.'
    throw new MayflyError({ code: 'invalid_client', status: 0, message })
  }
  const issuer = auth.kind === 'private_key_jwt' ? (auth.issuer ?? (await askIssuer(sender, options))) : ''
  const ask = async (clock: () => number) => {
    const form = async () => ({
      ...(await grantOf(auth, issuer, clock, options)),
      ...(request.scopes === undefined ? {} : { scope: request.scopes.join(' ') }),
      ...(request.audience === undefined ? {} : { audience: request.audience }),
    })
    const call = { method: 'POST', path: '/oauth/token', form, retry: 'always', ...options } as const
    return (await send<TokenAnswer>(sender, call)).body
  }
  try {
    return await ask(now)
  } catch (error) {
    const isRefused = error instanceof MayflyError && error.code === 'invalid_client'
    if (!isRefused || auth.kind !== 'private_key_jwt') throw error
    const skewMs = await clockSkew(sender, now, options)
    if (Math.abs(skewMs) < TOLERATED_SKEW_MS) throw error
    return ask(() => now() - skewMs)
  }
}

/** By how much our clock is ahead of the server's, to a second; 0 if the server does not say. */
async function clockSkew(sender: Sender, now: () => number, { signal }: CallOptions): Promise<number> {
  const reply = await send(sender, { method: 'GET', path: '/health', signal }).catch(() => undefined)
  const time = Date.parse(reply?.header('date') ?? '')
  return Number.isNaN(time) ? 0 : now() - time
}

/** RFC 8414 §3.3: an issuer that is not where it was asked for would let a relay use the assertion there. */
async function askIssuer(sender: Sender, options: CallOptions): Promise<string> {
  const call = { method: 'GET', path: '/.well-known/openid-configuration', ...options } as const
  const { issuer } = (await send<Discovery>(sender, call)).body
  if (isSameAddress(String(issuer), sender.server)) return issuer
  const message =
    'The server announces an issuer that is not its address. If that is right, give the issuer to the client.'
  throw new MayflyError({ code: 'unexpected_reply', status: 200, message })
}

async function grantOf(
  auth: ProvingAuth,
  issuer: string,
  now: () => number,
  options: CallOptions,
): Promise<Record<string, string>> {
  const grant_type = 'client_credentials'
  switch (auth.kind) {
    case 'client_secret':
      return { grant_type, client_id: auth.clientId, client_secret: auth.clientSecret }
    case 'private_key_jwt': {
      const claims = { clientId: auth.clientId, audience: issuer, nowMs: now() }
      return {
        grant_type,
        client_id: auth.clientId,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await signAssertion(auth.privateJwk, claims),
      }
    }
    case 'identity':
      // RFC 8693 §2.1.
      return {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: await auth.token(options),
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      }
  }
}
