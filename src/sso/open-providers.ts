import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  Configuration as Client,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  calculatePKCECodeChallenge,
  clockSkew,
  clockTolerance,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  type ServerMetadata,
} from 'openid-client'
import { HOUR_MS, JWT_TOLERANCE_MS } from '../domain/limits.ts'
import {
  personOf,
  type SsoClaims,
  SsoFailure,
  type SsoGroup,
  type SsoProvider,
} from '../domain/people/sso.ts'
import type { Secret } from '../domain/secret.ts'
import type { AddressLookup } from '../egress/address.ts'
import { createEgressFetch } from '../egress/fetch.ts'
import { createListenerCheck, type ListenerRules } from '../egress/listener.ts'
import { failureOf } from './failure-of.ts'

/** One entry of the setting `sso`, its files read. */
export interface SsoSettings {
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: Secret
  readonly ca: string | undefined
  readonly local: boolean
  readonly scopes: readonly string[]
  readonly groups: readonly SsoGroup[]
}

/** What providers need of this machine. */
export interface SsoWays {
  readonly lookup: AddressLookup
  readonly timeoutMs: number
  readonly log: ListenerRules['log']
  /** The server's clock, epoch ms. */
  readonly now: () => number
}

/** How long what a provider says of itself is used, and how long one that failed is left alone. */
const METADATA_MS = HOUR_MS
const PAUSE_MS = 5_000
/** Signatures that only the provider can make: neither `none`, nor `HS256`, whose key is the secret of the client. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA'],
]

/** Connects to nobody yet. */
export function openProviders(all: readonly SsoSettings[], ways: SsoWays): SsoProvider[] {
  return all.map((settings) => openProvider(settings, ways))
}

function openProvider(settings: SsoSettings, ways: SsoWays): SsoProvider {
  const { name, issuer, groups, scopes, clientId } = settings
  const fetch = createFetch(settings, ways)
  const metadata = createMetadata(() => discover(settings, fetch), ways.now)
  const client = async () => clientOf(await metadata(), settings, { fetch, now: ways.now })
  return {
    name,
    issuer,
    groups,
    begin: (request, isAgain) =>
      failing(async () => {
        const url = buildAuthorizationUrl(await client(), {
          redirect_uri: request.redirectUri,
          scope: scopes.join(' '),
          state: request.state,
          nonce: request.nonce,
          code_challenge: await calculatePKCECodeChallenge(request.verifier),
          code_challenge_method: 'S256',
          // `prompt` for providers that pass over `max_age`; the answer must have `auth_time` anyway.
          ...(isAgain ? { max_age: '0', prompt: 'login' } : {}),
        })
        return url.href
      }),
    finish: (request, parameters) =>
      failing(async (): Promise<SsoClaims> => {
        const url = new URL(request.redirectUri)
        url.search = parameters
        const config = await client()
        const tokens = await authorizationCodeGrant(config, url, {
          expectedState: request.state,
          expectedNonce: request.nonce,
          pkceCodeVerifier: request.verifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (claims === undefined) throw new SsoFailure('invalid', 'there is no id token')
        requireNotEarly(claims.iat, ways.now())
        const more = await userInfo(config, claims, tokens.access_token)
        return {
          audience: clientId,
          authTime: claims.auth_time,
          issuedAt: claims.iat,
          person: personOf(issuer, { ...more, ...claims }),
        }
      }),
  }
}

async function failing<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw failureOf(error)
  }
}

/** The library does not compare it. */
function requireNotEarly(issuedAt: number, now: number): void {
  if (issuedAt * 1_000 > now + JWT_TOLERANCE_MS)
    throw new SsoFailure('clock', `the id token was issued ${issuedAt * 1_000 - now} ms from now`)
}

/** Some providers say there what is not in the id token (OpenID Connect Core 1.0, §5.4). The subject must be the same. */
async function userInfo(
  config: Configuration,
  claims: Readonly<Record<string, unknown>>,
  accessToken: string,
): Promise<object> {
  const hasEmail = claims['email'] !== undefined
  const isWhole = hasEmail && claims['groups'] !== undefined
  if (isWhole || config.serverMetadata().userinfo_endpoint === undefined) return {}
  const { email, email_verified, ...others } = await fetchUserInfo(config, accessToken, String(claims['sub']))
  // Whether an address is verified is said of the address beside it.
  return hasEmail ? others : { ...others, email, email_verified }
}

type Fetch = (url: string, init: object) => Promise<Response>

/** Under the egress rules. Over plain HTTP the secret goes only to a listener of root's, or of our own. */
function createFetch({ name, ca, local }: SsoSettings, { lookup, timeoutMs, log }: SsoWays): Fetch {
  const warn: ListenerRules['log']['warn'] = (fields, message) => log.warn({ ...fields, sso: name }, message)
  const checkListener = createListenerCheck({ serviceAccounts: [], localUser: '', log: { warn } })
  const fetch = createEgressFetch({ local, lookup, timeoutMs, checkListener })
  return (url, init) => fetch(url, init, ca === undefined ? {} : { ca })
}

async function discover({ issuer, clientId, local }: SsoSettings, fetch: Fetch): Promise<ServerMetadata> {
  const found = await discovery(new URL(issuer), clientId, undefined, undefined, {
    [customFetch]: fetch,
    execute: local ? [allowInsecureRequests] : [],
  }).catch((error: unknown) => {
    const { reason, message } = failureOf(error)
    throw new SsoFailure(reason === 'unreachable' ? reason : 'misconfigured', message)
  })
  const { supportsPKCE: _, ...metadata } = found.serverMetadata()
  // The library compares addresses; an issuer is a text.
  if (metadata.issuer !== issuer)
    throw new SsoFailure(
      'misconfigured',
      'the provider calls its issuer something else than the setting does',
    )
  if (!metadata.authorization_endpoint || !metadata.token_endpoint || !metadata.jwks_uri)
    throw new SsoFailure(
      'misconfigured',
      'the provider has no authorization endpoint, token endpoint or keys',
    )
  const algorithms = metadata.id_token_signing_alg_values_supported ?? ['RS256']
  return {
    ...metadata,
    id_token_signing_alg_values_supported: algorithms.filter((one) => ALGORITHMS.includes(one)),
  }
}

/**
 * What the provider says of itself: asked for when it is needed, once for all who wait. While it does not answer, what it said
 * before is used.
 */
function createMetadata(
  ask: () => Promise<ServerMetadata>,
  now: () => number,
): () => Promise<ServerMetadata> {
  let known: { readonly metadata: ServerMetadata; readonly until: number } | undefined
  let failed: { readonly error: unknown; readonly until: number } | undefined
  let asking: Promise<ServerMetadata> | undefined
  const renew = async () => {
    try {
      const metadata = await ask()
      known = { metadata, until: now() + METADATA_MS }
      failed = undefined
      return metadata
    } catch (error) {
      failed = { error, until: now() + PAUSE_MS }
      if (known === undefined) throw error
      return known.metadata
    } finally {
      asking = undefined
    }
  }
  return async () => {
    if (known !== undefined && known.until > now()) return known.metadata
    if (failed !== undefined && failed.until > now()) {
      if (known === undefined) throw failed.error
      return known.metadata
    }
    asking ??= renew()
    return asking
  }
}

/** One for each login: so it reads the keys of the provider anew, and a key that was replaced is not kept. */
function clientOf(
  server: ServerMetadata,
  { clientId, clientSecret, local }: SsoSettings,
  { fetch, now }: { readonly fetch: Fetch; readonly now: () => number },
): Configuration {
  const own = {
    [clockSkew]: Math.round((now() - Date.now()) / 1_000),
    [clockTolerance]: JWT_TOLERANCE_MS / 1_000,
  }
  const client = new Client(server, clientId, own, authentication(server, clientSecret))
  client[customFetch] = fetch
  if (local) allowInsecureRequests(client)
  enableNonRepudiationChecks(client)
  return client
}

/** `client_secret_basic` is the default of OpenID Connect Discovery 1.0, §3. */
function authentication(
  { token_endpoint_auth_methods_supported: known }: ServerMetadata,
  secret: Secret,
): ClientAuth {
  return known === undefined || known.includes('client_secret_basic') || !known.includes('client_secret_post')
    ? ClientSecretBasic(secret.reveal())
    : ClientSecretPost(secret.reveal())
}
