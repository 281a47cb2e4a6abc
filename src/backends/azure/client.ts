import { randomUUID } from 'node:crypto'
import {
  type BackendError,
  denied,
  misconfigured,
  unavailable,
  unsupported,
} from '../../domain/backend-error.ts'
import { signAssertion } from '../assertion.ts'
import { callJson, detailOf, type JsonReply, notUnderstood, textIn } from '../json-api.ts'
import type { Host } from '../kind.ts'
import { type Config, isId, type Login } from './config.ts'

const NAME = 'Microsoft Entra'
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const ASSERTION_MS = 300_000

/**
 * A token for one resource ("OAuth 2.0 client credentials flow on the Microsoft identity platform"): with a shared secret, with a
 * certificate, or with a federated credential. `scope` is always the `.default` of a resource.
 */
export async function takeToken(
  settings: Config,
  login: Login,
  host: Host,
  resource: string,
  signal: AbortSignal,
): Promise<{ token: string; until: number }> {
  const url = `${settings.authority}/${settings.tenant_id}/oauth2/v2.0/token`
  const form = {
    client_id: settings.client_id,
    grant_type: 'client_credentials',
    scope: `${uriOf(resource)}/.default`,
    ...(await proofOf(settings, login, host, url)),
  }
  const asked = host.now()
  const reply = await callJson(host, NAME, url, { method: 'POST', form, signal }, { local: settings.local })
  if (reply.status !== 200) throw refusal(reply, login.way)
  const seconds = reply.body?.['expires_in']
  const token = textIn(NAME, reply.body, 'access_token')
  if (typeof seconds !== 'number') throw notUnderstood(NAME)
  return { token, until: asked + seconds * 1000 }
}

function uriOf(resource: string): string {
  if (isId(resource)) return resource
  return resource.startsWith('api/') ? `api://${resource.slice('api/'.length)}` : `https://${resource}`
}

async function proofOf(
  settings: Config,
  login: Login,
  host: Host,
  url: string,
): Promise<Record<string, string>> {
  if (login.way === 'secret') return { client_secret: login.secret }
  const assertion =
    login.way === 'certificate'
      ? await assertionOf(settings.client_id, login, host.now(), url)
      : await host.idToken({
          audience: settings.audience,
          subject: `backend/${host.name}`,
          expiresAt: host.now() + ASSERTION_MS,
        })
  return { client_assertion_type: JWT_BEARER, client_assertion: assertion }
}

/** "Microsoft identity platform application authentication certificate credentials", Assertion format. */
async function assertionOf(
  clientId: string,
  { thumbprint, key }: Login & { way: 'certificate' },
  now: number,
  url: string,
): Promise<string> {
  const iat = Math.floor(now / 1000)
  const claims = {
    aud: url,
    iss: clientId,
    sub: clientId,
    jti: randomUUID(),
    nbf: iat,
    iat,
    exp: iat + ASSERTION_MS / 1000,
  }
  return signAssertion(key, { alg: 'PS256', 'x5t#S256': thumbprint }, claims)
}

const LOGINS: Record<Login['way'], string> = {
  secret: 'check "client_secret", which may have expired',
  certificate: 'check that the application has this certificate, and the clock of this machine',
  federation: 'check the issuer, the subject and the audience of its federated credential',
}

/** AADSTS90002 and AADSTS900023, which come as `invalid_request`. */
const NO_TENANT = new Set<unknown>([90_002, 900_023])

/** "Microsoft Entra authentication and authorization error codes": by `error`, else by number, since the numbers may change. */
function refusal(reply: JsonReply, way: Login['way']): BackendError {
  const options = { detail: detailOf(reply) }
  if (reply.status < 400) return notUnderstood(NAME)
  const { error, error_codes: codes } = reply.body ?? {}
  if (Array.isArray(codes) && codes.some((code) => NO_TENANT.has(code))) {
    return misconfigured('Microsoft Entra does not know the tenant "tenant_id".', options)
  }
  if (error === 'temporarily_unavailable') {
    return unavailable('Microsoft Entra cannot take the request at this time.', options)
  }
  if (error === 'invalid_resource' || error === 'invalid_scope') {
    return unsupported('The tenant does not know the resource.', options)
  }
  if (error === 'unauthorized_client') {
    return misconfigured('The tenant does not know the application "client_id".', options)
  }
  return denied(`Microsoft Entra refused the application: ${LOGINS[way]}.`, {
    ...options,
    login: true,
  })
}
