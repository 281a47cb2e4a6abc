import { type BackendError, denied, misconfigured, unavailable } from '../../domain/backend-error.ts'
import { isObject } from '../../domain/formats/json.ts'
import { callJson, detailOf, type JsonCall, type JsonReply, notUnderstood } from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'

const NAME = 'Kubernetes'
const TOKEN_MS = 600_000
/** A page of our objects, each with up to 2 KB. */
const PAGE_BYTES = 1_048_576

export const SERVICE_ACCOUNTS = (namespace: string) => `/api/v1/namespaces/${namespace}/serviceaccounts`
export const ROLE_BINDINGS = (namespace: string) =>
  `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`

export type Client = ReturnType<typeof createClient>

/** Requests as Mayfly's own login. */
export function createClient(settings: Config, host: Host) {
  const { local, ca, client_certificate: cert, client_key: key } = settings
  const base = settings.server.replace(/\/+$/, '')
  const trust = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }

  async function bearer(): Promise<string | undefined> {
    if (settings.audience === undefined) return settings.token
    const expiresAt = host.now() + TOKEN_MS
    return host.idToken({ audience: settings.audience, subject: `backend/${host.name}`, expiresAt })
  }

  async function call(path: string, init: JsonCall): Promise<JsonReply> {
    const token = await bearer()
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const options = { local, maxBytes: PAGE_BYTES, ...trust }
    return callJson(host, NAME, `${base}${path}`, { ...init, headers }, options)
  }

  return {
    base,
    /** Creates an object and returns it. `dryRun`: checks it only ("Kubernetes API Concepts", Dry-run). */
    async create(path: string, object: object, signal: AbortSignal, dryRun = false) {
      const reply = await call(dryRun ? `${path}?dryRun=All` : path, { method: 'POST', json: object, signal })
      if (reply.status !== 201 || reply.body === undefined) throw refusal(reply)
      return reply.body
    },
    /** Ends an object. One that is not there counts as ended. */
    async remove(path: string, signal: AbortSignal): Promise<void> {
      const reply = await call(path, { method: 'DELETE', signal })
      // Of the API server itself: a wrong address answers with 404, too.
      const isGone = reply.status === 404 && reply.body?.['reason'] === 'NotFound'
      if (!isGone && (reply.status > 202 || reply.body?.['kind'] === undefined)) throw refusal(reply)
    },
    /** Metadata of a page of objects, and where the next one begins. */
    async list(path: string, query: Record<string, string>, signal: AbortSignal) {
      const reply = await call(`${path}?${new URLSearchParams(query)}`, { signal })
      const { items, metadata } = reply.body ?? {}
      if (reply.status !== 200 || !Array.isArray(items) || !isObject(metadata)) throw refusal(reply)
      const next = metadata['continue']
      return {
        items: items.map((item: unknown) =>
          isObject(item) && isObject(item['metadata']) ? item['metadata'] : {},
        ),
        next: typeof next === 'string' && next !== '' ? next : undefined,
      }
    },
    /** Whether Mayfly may do so ("Authorization", Checking API access). */
    async may(attributes: object, signal: AbortSignal): Promise<boolean> {
      const review = { ...REVIEW, spec: { resourceAttributes: attributes } }
      const reply = await call('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
        method: 'POST',
        json: review,
        signal,
      })
      const status = reply.body?.['status']
      if (reply.status !== 201 || !isObject(status)) throw refusal(reply)
      return status['allowed'] === true
    },
  }
}

const REVIEW = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' }

/** An answer that says that nothing was made or ended ("Kubernetes API Concepts", and `Status` of the API reference). */
function refusal(reply: JsonReply): BackendError {
  const options = { detail: detailOf(reply) }
  if (reply.status < 400) return notUnderstood(NAME)
  if (reply.status === 401) {
    return denied('Kubernetes refused the login.', { ...options, login: true })
  }
  if (reply.status === 403) {
    return denied('Kubernetes refused: the login of Mayfly lacks a permission.', options)
  }
  if (reply.status === 404) {
    return misconfigured('Kubernetes does not know the namespace, or the address.', options)
  }
  if (reply.status === 409) {
    return unavailable('Kubernetes has an object of this name already.', options)
  }
  return misconfigured(`Kubernetes refused the request (${reply.status}).`, options)
}
