import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import Provider, { type Configuration } from 'oidc-provider'

/** A provider of single sign-on: the npm package `oidc-provider` over HTTP(S), and what a hostile one would change. */
export interface SsoServer {
  readonly issuer: string
  /** Who is at the browser: their `sub`. */
  user: string
  /** What is said of whom, beside `sub`. */
  readonly people: Map<string, Record<string, unknown>>
  /** Called with each request before the provider sees it. */
  before: (path: string) => Promise<void> | void
  /** What is sent instead of an id token. */
  forge: ((token: IdToken) => string) | undefined
  /** Changes documents: discovery and keys. */
  readonly documents: Map<string, (body: Record<string, unknown>) => unknown>
  /** Paths, in the order in which they were asked for. */
  readonly seen: string[]
  /** Signs from now on with another key, and publishes only that one. */
  rotateKeys(): void
  /** As a browser: follows the login to the page that it ends at. Returns the query of that address. */
  logIn(url: string): Promise<string>
  /** An entry of the setting `sso`. */
  entry(directory: string, more?: Record<string, unknown>): Promise<Record<string, unknown>>
  close(): Promise<void>
}

/** An id token as the provider made it. */
export interface IdToken {
  readonly text: string
  readonly header: Record<string, unknown>
  readonly claims: Record<string, unknown>
  /** The same with other claims or another header, signed by the provider. */
  signed(claims?: Record<string, unknown>, header?: Record<string, unknown>): string
}

const SECRET = 'the secret of the client with % and : in it'
/** `relyingPartyOf` of the tests' issuer. */
export const REDIRECT = 'https://mayfly.test/console/sso'

interface Options {
  readonly clientId?: string
  readonly redirect?: string
  readonly auth?: 'client_secret_basic' | 'client_secret_post'
  /** Claims are only in the userinfo reply, as with providers that conform to the letter. */
  readonly userinfo?: boolean
  readonly tls?: { readonly cert: string; readonly key: string }
}

const newKey = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = randomUUID()
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
  return { privateKey, kid, jwk }
}

const publicOf = ({ kty, n, e, kid, use, alg }: JsonWebKey) => ({ kty, n, e, kid, use, alg })

export async function startSsoServer(options: Options = {}): Promise<SsoServer> {
  let key = newKey()
  const first = key
  let listener: RequestListener = (_, response) => response.writeHead(503).end()
  const handle: RequestListener = (request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    opened.seen.push(path)
    Promise.resolve(opened.before(path)).then(
      () => listener(request, response),
      () => request.socket.destroy(),
    )
  }
  const server = options.tls === undefined ? createServer(handle) : createSecureServer(options.tls, handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = options.tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`
  const provider = new Provider(
    issuer,
    configurationOf(options, key.jwk, () => opened),
  )
  provider.proxy = true
  provider.use(async (ctx, next) => {
    // The login page of this provider: whoever is at the browser logs in.
    if (ctx.path.startsWith('/interaction/')) {
      const result = opened.user === '' ? { error: 'access_denied' } : { login: { accountId: opened.user } }
      await provider.interactionFinished(ctx.req, ctx.res, result)
      ctx.respond = false
      return
    }
    await next()
    const body = ctx.body as Record<string, unknown> | undefined
    const change = opened.documents.get(ctx.path)
    if (change !== undefined) ctx.body = change(body ?? {})
    if (ctx.path === '/jwks' && key !== first) ctx.body = { keys: [publicOf(key.jwk)] }
    if (ctx.path !== '/token' || typeof body?.['id_token'] !== 'string') return
    const token = read(body['id_token'], key)
    if (opened.forge !== undefined) body['id_token'] = opened.forge(token)
    else if (key !== first) body['id_token'] = token.signed()
  })
  listener = provider.callback()
  const opened: SsoServer = {
    issuer,
    user: 'alice',
    people: new Map(),
    before: () => undefined,
    forge: undefined,
    documents: new Map(),
    seen: [],
    rotateKeys() {
      key = newKey()
    },
    logIn: (url) => follow(url, issuer, options.redirect ?? REDIRECT),
    async entry(directory, more = {}) {
      const file = join(directory, `${port}.secret`)
      await writeFile(file, `${SECRET}\n`)
      return {
        name: 'Example SSO',
        issuer,
        client_id: options.clientId ?? 'mayfly',
        client_secret_file: file,
        local: true,
        scopes: ['openid', 'profile', 'email', 'groups'],
        groups: [{ group: 'admins', scopes: ['admin:*'], backend_scopes: ['*'] }],
        ...more,
      }
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return opened
}

const decoded = (part = '') =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function read(text: string, { privateKey, kid }: { privateKey: KeyObject; kid: string }): IdToken {
  const [header, claims] = text.split('.').slice(0, 2).map(decoded)
  if (header === undefined || claims === undefined) throw new Error('no id token')
  return {
    text,
    header,
    claims,
    signed(more = {}, other = {}) {
      const body = `${encoded({ ...header, kid, ...other })}.${encoded({ ...claims, ...more })}`
      return `${body}.${sign('sha256', Buffer.from(body), privateKey).toString('base64url')}`
    },
  }
}

/** Follows redirects with a jar of cookies until the address of the page. */
async function follow(start: string, issuer: string, redirect: string): Promise<string> {
  const jar = new Map<string, string>()
  let url = start
  for (let hops = 0; hops < 12; hops += 1) {
    if (url.startsWith(`${redirect}?`)) return new URL(url).search.slice(1)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const reply = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of reply.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    const next = reply.headers.get('location')
    if (next === null) throw new Error(`the login stopped: ${reply.status} ${await reply.text()}`)
    url = new URL(next, issuer).href
  }
  throw new Error('the login does not end')
}

function configurationOf(
  { clientId = 'mayfly', redirect = REDIRECT, auth = 'client_secret_basic', userinfo = false }: Options,
  jwk: JsonWebKey,
  server: () => SsoServer,
): Configuration {
  return {
    clients: [
      {
        client_id: clientId,
        client_secret: SECRET,
        redirect_uris: [redirect],
        response_types: ['code'],
        grant_types: ['authorization_code'],
        token_endpoint_auth_method: auth,
      },
    ],
    jwks: { keys: [jwk as never] },
    clientAuthMethods: [auth],
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: {
      openid: ['sub'],
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
      groups: ['groups', '_claim_names'],
    },
    conformIdTokenClaims: userinfo,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    cookies: { keys: ['a key for cookies'] },
    ttl: {
      AuthorizationCode: 60,
      AccessToken: 300,
      IdToken: 300,
      Session: 3_600,
      Grant: 3_600,
      Interaction: 300,
    },
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, ...server().people.get(id) }),
    }),
    // Nobody is asked for consent.
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({
        accountId: ctx.oidc.session?.accountId ?? '',
        clientId: ctx.oidc.client?.clientId ?? '',
      })
      grant.addOIDCScope('openid profile email groups')
      await grant.save()
      return grant
    },
  }
}
