import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { parseDuration } from '../../domain/duration.ts'
import { signAssertion } from '../assertion.ts'
import type { Host } from '../kind.ts'
import type { Config, Send } from './calls.ts'
import type { Recipe } from './schema.ts'
import { fillHeader, fillJson, fillText, pointAt, type Vars } from './template.ts'

export interface Auth {
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>
  /** Drops a token that was fetched earlier. Returns whether there was one. */
  forget(): boolean
}

/** The lifetime of a token that states none, and how long before its end a token is no longer used. */
const TOKEN_MS = 300_000
const EARLY_MS = 30_000

const basic = (username: string, password: string) =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

/** How the requests of a recipe log in. Only here secret fields are used. */
export function createAuth({ auth, title }: Recipe, config: Config, host: Host, plain: Send): Auth {
  const fixed = (headers: () => Readonly<Record<string, string>>): Auth => ({
    headers: async () => headers(),
    forget: () => false,
  })
  if (auth.bearer !== undefined) {
    const { bearer } = auth
    return fixed(() => ({ authorization: `Bearer ${fillHeader(bearer, config)}` }))
  }
  if (auth.basic !== undefined) {
    const { username, password } = auth.basic
    return fixed(() => ({ authorization: basic(fillText(username, config), fillText(password, config)) }))
  }
  if (auth.header !== undefined) {
    const { name, value } = auth.header
    return fixed(() => ({ [name.toLowerCase()]: fillHeader(value, config) }))
  }
  if (auth.jwt !== undefined) return signing(auth.jwt, config, host)
  const fetching =
    auth.login ?? (auth.oauth === undefined ? undefined : clientCredentials(auth.oauth, config))
  if (fetching === undefined) throw misconfigured('The recipe does not say how to log in.')
  return exchanging(fetching, { title, config, host, plain })
}

type Login = NonNullable<Recipe['auth']['login']>

/** RFC 6749 §4.4; the login of the client is form-encoded before it is made a basic one (§2.3.1). */
function clientCredentials(oauth: NonNullable<Recipe['auth']['oauth']>, config: Config): Login {
  const { request, client_id: id, client_secret: secret, scope, send = 'basic' } = oauth
  const encoded = (template: string) =>
    new URLSearchParams([['', fillText(template, config)]]).toString().slice(1)
  return {
    request,
    form: {
      grant_type: 'client_credentials',
      ...(scope === undefined ? {} : { scope }),
      ...(send === 'body' ? { client_id: id, client_secret: secret } : {}),
    },
    ...(send === 'basic' ? { headers: { authorization: basic(encoded(id), encoded(secret)) } } : {}),
    token: '/access_token',
    expires_in: '/expires_in',
  }
}

interface Exchange {
  readonly title: string
  readonly config: Config
  readonly host: Host
  readonly plain: Send
}

/** Exchanges a login for a token, once for all requests that need it at the same time. */
function exchanging(login: Login, { title, config, host, plain }: Exchange): Auth {
  let known: { readonly token: string; readonly until: number } | undefined
  let under: Promise<string> | undefined
  async function fetchToken(): Promise<string> {
    // No caller's signal: others wait for it, too.
    const signal = AbortSignal.timeout(host.timeoutMs)
    const asked = host.now()
    const reply = (await plain(login, { vars: config, signal })).json()
    const token = pointAt(reply, login.token)
    const seconds = login.expires_in === undefined ? undefined : pointAt(reply, login.expires_in)
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
      throw unavailable(`${title} did not answer the login with a token.`)
    }
    const lifetime = typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : TOKEN_MS
    known = { token, until: asked + lifetime - Math.min(EARLY_MS, lifetime / 2) }
    return token
  }
  return {
    async headers(signal) {
      if (signal.aborted) throw new BackendError('timeout', `${title} was not asked in time.`)
      if (known !== undefined && known.until > host.now()) return { authorization: `Bearer ${known.token}` }
      under ??= fetchToken().finally(() => {
        under = undefined
      })
      const token = await unlessAborted(under, signal).catch((error: unknown) => {
        if (error !== signal.reason) throw error
        throw new BackendError('timeout', `${title} did not answer the login in time.`, { cause: error })
      })
      return { authorization: `Bearer ${token}` }
    },
    forget() {
      const hadOne = known !== undefined
      known = undefined
      return hadOne
    },
  }
}

function signing(spec: NonNullable<Recipe['auth']['jwt']>, config: Config, host: Host): Auth {
  const { algorithm, key, key_id: keyId, lifetime, claims } = spec
  return {
    async headers() {
      const { importPKCS8 } = await import('jose')
      const iat = Math.floor(host.now() / 1000)
      const filled = fillJson(claims, config, []) as Vars
      try {
        const header = {
          alg: algorithm,
          ...(keyId === undefined ? {} : { kid: fillText(keyId, config) }),
        }
        const exp = iat + Math.floor((parseDuration(lifetime) ?? TOKEN_MS) / 1000)
        const imported = await importPKCS8(fillText(key, config), algorithm)
        const token = await signAssertion(imported, header, { ...filled, iat, exp })
        return { authorization: `Bearer ${token}` }
      } catch (cause) {
        throw misconfigured('The private key cannot sign: it must be PKCS #8 as PEM, of the right type.', {
          cause,
        })
      }
    },
    forget: () => false,
  }
}
