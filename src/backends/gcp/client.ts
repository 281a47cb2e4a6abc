import { type BackendError, denied, misconfigured, unsupported } from '../../domain/backend-error.ts'
import { signAssertion } from '../assertion.ts'
import { callJson, detailOf, type JsonReply, notUnderstood, textIn } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config, ServiceAccountKey } from './config.ts'

const NAME = 'Google Cloud'
const AUTH = 'https://www.googleapis.com/auth/'
/** Enough for generateAccessToken (its reference, Authorization scopes), and for nothing else. */
const IAM = `${AUTH}iam`
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const LOGIN_S = 3_600
const ID_TOKEN_MS = 300_000
/** The login is not reused for this long before its end. */
const SPARE_MS = 300_000

interface Login {
  readonly token: string
  readonly until: number
}

export function createClient(settings: Config, key: ServiceAccountKey | undefined, host: Host) {
  const { endpoint, local } = settings
  const at = (name: string) => endpoint ?? `https://${name}.googleapis.com`
  const how = { local }
  let login: Login | undefined

  async function takeLogin(form: Record<string, string>, url: string, signal: AbortSignal): Promise<Login> {
    const reply = await callJson(host, NAME, url, { method: 'POST', form, signal }, how)
    if (reply.status !== 200) throw loginRefused(reply, key === undefined)
    const seconds = reply.body?.['expires_in']
    const token = textIn(NAME, reply.body, 'access_token')
    if (typeof seconds !== 'number') throw notUnderstood(NAME)
    return { token, until: host.now() + seconds * 1000 }
  }

  /** "Using OAuth 2.0 for Server to Server Applications", HTTP/REST: a JWT signed with the key. */
  async function byKey({ email, keyId, key: secret }: ServiceAccountKey, signal: AbortSignal) {
    const url = endpoint === undefined ? 'https://oauth2.googleapis.com/token' : `${endpoint}/token`
    const iat = Math.floor(host.now() / 1000)
    const claims = {
      iss: email,
      scope: IAM,
      aud: 'https://oauth2.googleapis.com/token',
      iat,
      exp: iat + LOGIN_S,
    }
    const assertion = await signAssertion(secret, { alg: 'RS256', kid: keyId }, claims)
    return takeLogin({ grant_type: BEARER, assertion }, url, signal)
  }

  /** Security Token Service API reference, "Method: token". The audience is the one that providers expect by default. */
  async function byProvider(provider: string, signal: AbortSignal) {
    const audience = `//iam.googleapis.com/${provider}`
    const subject = await host.idToken({
      audience: `https:${audience}`,
      subject: `backend/${host.name}`,
      expiresAt: host.now() + ID_TOKEN_MS,
    })
    const form = {
      grant_type: EXCHANGE,
      audience,
      scope: IAM,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: subject,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    }
    return takeLogin(form, `${at('sts')}/v1/token`, signal)
  }

  async function loginToken(signal: AbortSignal): Promise<Login> {
    if (login !== undefined && login.until - SPARE_MS > host.now()) return login
    login = key === undefined ? await byProvider(String(settings.provider), signal) : await byKey(key, signal)
    return login
  }

  return {
    /** Mayfly's own token. Throws `BackendError` where the login is refused. */
    logIn: loginToken,
    /** IAM Service Account Credentials API reference, "Method: projects.serviceAccounts.generateAccessToken". */
    async generate(scopes: readonly string[], seconds: number, signal: AbortSignal) {
      const { token } = await loginToken(signal)
      const url = `${at('iamcredentials')}/v1/projects/-/serviceAccounts/${encodeURIComponent(settings.service_account)}:generateAccessToken`
      const json = { scope: scopes.map((scope) => AUTH + scope), lifetime: `${seconds}s` }
      const headers = { authorization: `Bearer ${token}` }
      const reply = await callJson(host, NAME, url, { method: 'POST', headers, json, signal }, how)
      if (reply.status === 401) login = undefined
      if (reply.status !== 200) throw refusal(reply, seconds)
      const until = Date.parse(textIn(NAME, reply.body, 'expireTime'))
      if (Number.isNaN(until)) throw notUnderstood(NAME)
      return { token: textIn(NAME, reply.body, 'accessToken'), until }
    },
  }
}

function loginRefused(reply: JsonReply, isFederated: boolean): BackendError {
  if (reply.status < 400) return notUnderstood(NAME)
  const why = isFederated
    ? 'Google does not accept the id token of Mayfly: check "provider", its issuer and audience, and its attribute condition.'
    : 'Google does not accept "key": it was deleted or disabled, or the clock of this machine is wrong.'
  return denied(why, { detail: detailOf(reply), login: true })
}

function refusal(reply: JsonReply, seconds: number): BackendError {
  const options = { detail: detailOf(reply) }
  if (reply.status < 400) return notUnderstood(NAME)
  if (reply.status === 400) {
    const isLong = seconds > 3_600
    return isLong
      ? unsupported('Google permits more than an hour only where an organization policy says so.', options)
      : unsupported('Google does not know one of the OAuth scopes.', options)
  }
  if (reply.status === 404) {
    return misconfigured('Google does not know the service account.', options)
  }
  const why =
    'Google refused: Mayfly needs the role "Service Account Token Creator" on the service account, and the IAM Service Account Credentials API.'
  return denied(why, options)
}
