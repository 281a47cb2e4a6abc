import { unlessAborted } from '../../domain/abort.ts'
import { BackendError, denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { isObject, type JsonObject, parseJson } from '../../domain/formats/json.ts'
import { connectionError } from '../../egress/network.ts'
import { notUnderstood } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

/** A reply with a status below 500 that is not an error of the login. */
export interface Reply {
  readonly status: number
  readonly body: JsonObject
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below `/v1/`. */
  readonly path: string
  readonly body?: JsonObject
  /** Instead of the token that Mayfly logs in with. */
  readonly token?: string
}

export interface Client extends AsyncDisposable {
  /** Throws `BackendError` where there was no answer, or one that does not say what was done. */
  call(call: Call, signal: AbortSignal): Promise<Reply>
}

interface Login {
  readonly token: string
  /** Epoch ms; from then on a new one is used. */
  readonly until: number
}

const DEFAULT_MOUNT = { approle: 'approle', jwt: 'jwt' }
/** For the audience of Mayfly's token: the time it takes to log in. */
const ID_TOKEN_MS = 60_000
const LOGOUT_MS = 2_000

export function createClient(settings: Config, host: Host): Client {
  const base = `${settings.address.replace(/\/$/, '')}/v1/`
  const way = { local: settings.local, ...(settings.ca === undefined ? {} : { ca: settings.ca }) }
  let login: Login | undefined
  let loggingIn: Promise<Login> | undefined

  async function send({ method, path, body }: Call, token?: string, signal?: AbortSignal) {
    const headers = {
      'x-vault-request': 'true',
      ...(token === undefined ? {} : { 'x-vault-token': token }),
      ...(settings.namespace === undefined ? {} : { 'x-vault-namespace': settings.namespace }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    const init = {
      method,
      headers,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    return readReply(await host.fetch(base + path, init, way))
  }

  async function logIn(): Promise<Login> {
    const { auth, role, secret_id: secretId } = settings
    if (auth === 'token') return { token: settings.token ?? '', until: Number.POSITIVE_INFINITY }
    const path = `auth/${settings.auth_mount ?? DEFAULT_MOUNT[auth]}/login`
    const now = host.now()
    const body =
      auth === 'approle'
        ? { role_id: role, ...(secretId === undefined ? {} : { secret_id: secretId }) }
        : { role, jwt: await idToken(settings, host) }
    const reply = await send({ method: 'POST', path, body })
    if (reply.status >= 400) throw refusal(reply, 'Vault refused the login of Mayfly.')
    const { client_token: token, lease_duration: seconds } = objectAt(reply.body, 'auth')
    if (typeof token !== 'string' || typeof seconds !== 'number') throw notUnderstood('Vault')
    // A lifetime of 0 is none at all. The last third is for calls under way.
    return { token, until: seconds === 0 ? Number.POSITIVE_INFINITY : now + (seconds * 1000 * 2) / 3 }
  }

  /** Shared by calls at the same time, so that none of them may stop it. */
  async function currentLogin(signal: AbortSignal): Promise<Login> {
    if (login !== undefined && login.until > host.now()) return login
    loggingIn ??= logIn()
      .then((made) => {
        login = made
        return made
      })
      .finally(() => {
        loggingIn = undefined
      })
    try {
      return await unlessAborted(loggingIn, signal)
    } catch (error) {
      throw error instanceof BackendError ? error : connectionError(error, 'Vault', signal)
    }
  }

  return {
    async call(call, signal) {
      if (call.token !== undefined) return send(call, call.token, signal)
      const { token } = await currentLogin(signal)
      const reply = await send(call, token, signal)
      // A login can be ended at any time, also by a server that lost it: nothing was done, so once more with a new one.
      if (reply.status !== 403 || settings.auth === 'token' || !(await isEnded(token, signal))) return reply
      login = undefined
      return send(call, (await currentLogin(signal)).token, signal)
    },
    async [Symbol.asyncDispose]() {
      const known = login
      login = undefined
      if (known === undefined || settings.auth === 'token') return
      const call = { method: 'POST', path: 'auth/token/revoke-self' } as const
      // It would end by itself.
      await send(call, known.token, AbortSignal.timeout(LOGOUT_MS)).catch(() => undefined)
    },
  }

  async function isEnded(token: string, signal: AbortSignal): Promise<boolean> {
    const { status } = await send({ method: 'GET', path: 'auth/token/lookup-self' }, token, signal)
    return status === 403
  }
}

function idToken(settings: Config, host: Host): Promise<string> {
  return host.idToken({
    audience: settings.address,
    subject: host.uid,
    expiresAt: host.now() + ID_TOKEN_MS,
    claims: { backend: host.name },
  })
}

/** HTTP status codes: https://developer.hashicorp.com/vault/api-docs#http-status-codes */
async function readReply(reply: Response): Promise<Reply> {
  const { status } = reply
  const text = await reply.text()
  const body = text === '' ? {} : parseJson(text)
  const known = isObject(body) ? body : {}
  if (status === 503 && String(known['errors']).includes('sealed')) {
    throw unavailable('Vault is sealed.', { detail: String(status) })
  }
  // 412: a standby that is behind; 472 and 473: one that serves nobody.
  if (status >= 500 || [412, 429, 472, 473].includes(status)) {
    throw unavailable('Vault cannot take requests at this time.', {
      detail: String(status),
    })
  }
  if (status < 400 && !isObject(body)) throw notUnderstood('Vault')
  return { status, body: known }
}

export function objectAt(body: JsonObject, field: string): JsonObject {
  const value = body[field]
  if (!isObject(value)) throw notUnderstood('Vault')
  return value
}

/** For a status from 400 to 499: nothing was done. `message` is for a permission that is missing. */
export function refusal({ status, body }: Reply, message: string): BackendError {
  const errors = Array.isArray(body['errors']) ? body['errors'].map(String).join('; ') : ''
  const detail = `${status}: ${errors.replace(/[^\x20-\x7e]/g, ' ').slice(0, 300)}`
  if (status === 401 || status === 403) {
    return denied(message, { detail, login: /invalid token/.test(errors) })
  }
  if (/subset of parent/.test(errors)) {
    const text =
      'Mayfly does not hold one of the policies itself, which Vault requires of those that it gives.'
    return denied(text, { detail })
  }
  if (status === 404) return misconfigured('Vault knows no such path.', { detail })
  return misconfigured('Vault refused the request; see the log.', { detail })
}
