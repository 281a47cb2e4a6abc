import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider, { type Configuration } from 'oidc-provider'
import type { KeySource } from '../../src/domain/identity/identity.ts'
import { createEgressFetch } from '../../src/egress/fetch.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { newSigner, type Signer } from './identity-tokens.ts'
import { AUDIENCE } from './preset-tokens.ts'

/** An issuer of workload tokens: the npm package `oidc-provider` over HTTP(S), and what a hostile or broken one would answer. */
export interface LookAlikeIssuer {
  readonly issuer: string
  /** Where an entry finds its keys: by discovery. */
  readonly keys: KeySource
  /** What the provider signs for a workload that asks for this audience: `sub` is `workload`. */
  token(more?: { readonly audience?: string; readonly claims?: Record<string, unknown> }): Promise<string>
  /** Signs with another key from now on, and publishes only that one. */
  rotateKeys(): void
  /** The key that signs now, to forge with. */
  signer(): Signer
  /** Answers instead of the provider, by path. */
  readonly answers: Map<string, RequestListener>
  /** Paths of the documents that were asked for, in order. */
  readonly seen: string[]
  close(): Promise<void>
}

export const DISCOVERY = '/.well-known/openid-configuration'
export const JWKS = '/jwks'
const SECRET = 'the secret of the workload at its issuer'

interface Options {
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string }
}

export async function startLookAlikeIssuer({ tls }: Options = {}): Promise<LookAlikeIssuer> {
  const answers: LookAlikeIssuer['answers'] = new Map()
  const seen: string[] = []
  let claims: Record<string, unknown> = {}
  let provider: RequestListener = (_, response) => response.writeHead(503).end()
  const handle: RequestListener = (request, response) => {
    const path = request.url ?? ''
    if (request.method === 'GET') seen.push(path)
    const answer = answers.get(path) ?? provider
    answer(request, response)
  }
  const server = tls === undefined ? createServer(handle) : createSecureServer(tls, handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  let signer = newSigner('RS256')
  const open = () => {
    const opened = new Provider(
      issuer,
      configurationOf(signer, () => claims),
    )
    opened.proxy = true
    provider = opened.callback()
  }
  open()
  const checkListener = async () => undefined
  const { addresses: lookup } = createResolver()
  const ask = createEgressFetch({ local: true, lookup, timeoutMs: 5_000, checkListener })
  return {
    issuer,
    keys: { jwks: undefined, jwksUri: undefined, ca: tls?.ca, local: true },
    answers,
    seen,
    signer: () => signer,
    rotateKeys: () => {
      signer = newSigner('RS256')
      open()
    },
    token: async ({ audience = AUDIENCE, claims: own = {} } = {}) => {
      claims = own
      const body = new URLSearchParams({ grant_type: 'client_credentials', resource: audience })
      const authorization = `Basic ${Buffer.from(`workload:${encodeURIComponent(SECRET)}`).toString('base64')}`
      const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
      const how = tls === undefined ? {} : { ca: tls.ca }
      const reply = await ask(`${issuer}/token`, { method: 'POST', body: body.toString(), headers }, how)
      const { access_token: token } = (await reply.json()) as { access_token?: string }
      if (token === undefined) throw new Error(`the issuer answered ${reply.status}`)
      return token
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The provider's access tokens are JWTs (RFC 9068) for the audience that was asked for (RFC 8707). */
function configurationOf(signer: Signer, claims: () => Record<string, unknown>): Configuration {
  return {
    clients: [
      {
        client_id: 'workload',
        client_secret: SECRET,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    jwks: { keys: [signer.privateJwk as never] },
    extraTokenClaims: async () => claims(),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: (_ctx, audience) => ({
          scope: '',
          audience,
          accessTokenTTL: 300,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  }
}
