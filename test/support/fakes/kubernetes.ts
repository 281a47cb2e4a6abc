import { randomBytes, randomUUID } from 'node:crypto'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { type FakeReply, type FakeRequest, startFake } from './fake-server.ts'

interface Metadata {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly labels: Record<string, string>
  readonly annotations?: Record<string, string>
}
interface Binding {
  readonly metadata: Metadata
  readonly roleRef: { readonly kind: string; readonly name: string }
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[]
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/
/** What the built-in roles permit on pods. */
const VERBS: Record<string, string[]> = { view: ['get'], edit: ['get', 'delete'] }

function status(code: number, reason: string, message: string): FakeReply {
  const body = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code }
  return { status: code, body }
}

/** The part of an API server that issues and judges tokens: RBAC, service accounts, TokenRequest and access reviews. */
export async function startKubernetes(options: {
  tls: { cert: string; key: string }
  namespaces: string[]
  /** Believes tokens of this issuer for the audience `kubernetes`. */
  issuer?: string
}) {
  const accounts = new Map<string, Metadata>()
  const bindings = new Map<string, Binding>()
  const tokens = new Map<string, { readonly account: string; readonly uid: string; readonly until: number }>()
  const login = randomBytes(30).toString('base64url')
  /** Taken away from Mayfly's own login: `verb resource`. */
  const forbidden = new Set<string>()
  const bindable = new Set(['view', 'edit', 'deployer'])
  const keys = options.issuer && createRemoteJWKSet(new URL(`${options.issuer}/.well-known/jwks.json`))

  async function userOf(bearer: string): Promise<string | undefined> {
    if (bearer === login) return 'mayfly'
    const known = tokens.get(bearer)
    if (known !== undefined) {
      const isAlive = accounts.get(known.account)?.uid === known.uid && known.until > Date.now()
      return isAlive ? known.account : undefined
    }
    if (!keys) return undefined
    const checks = { issuer: String(options.issuer), audience: 'kubernetes' }
    return jwtVerify(bearer, keys, checks).then(
      ({ payload }) => (payload.sub === 'backend/k8s' ? 'mayfly' : undefined),
      () => undefined,
    )
  }

  function create(request: FakeRequest, namespace: string, resource: string): FakeReply {
    const body = JSON.parse(request.body)
    const metadata: Metadata = { labels: {}, ...body.metadata, namespace, uid: randomUUID() }
    const key = `${namespace}/${metadata.name}`
    if (!options.namespaces.includes(namespace)) {
      return status(404, 'NotFound', `namespaces "${namespace}" not found`)
    }
    if (request.headers['content-type'] !== 'application/json') {
      return status(415, 'UnsupportedMediaType', 'the body must be JSON')
    }
    const badLabel = Object.values(metadata.labels).some((value) => !LABEL_VALUE.test(value))
    if (!SUBDOMAIN.test(metadata.name) || badLabel) return status(422, 'Invalid', 'metadata is invalid')
    const kinds = {
      serviceaccounts: 'v1 ServiceAccount',
      rolebindings: 'rbac.authorization.k8s.io/v1 RoleBinding',
    }
    if (`${body.apiVersion} ${body.kind}` !== kinds[resource as keyof typeof kinds]) {
      return status(400, 'BadRequest', 'the object does not fit the address')
    }
    const store: Map<string, unknown> = resource === 'serviceaccounts' ? accounts : bindings
    if (store.has(key)) return status(409, 'AlreadyExists', `${resource} "${metadata.name}" already exists`)
    if (resource === 'rolebindings') {
      const { roleRef, subjects } = body as Binding
      if (!/^(Cluster)?Role$/.test(roleRef?.kind) || subjects.some((one) => one.namespace === undefined)) {
        return status(422, 'Invalid', 'roleRef or subjects are invalid')
      }
      // "Using RBAC Authorization", Privilege escalation prevention.
      if (!bindable.has(roleRef.name)) {
        return status(
          403,
          'Forbidden',
          'user "mayfly" is attempting to grant RBAC permissions not currently held',
        )
      }
    }
    const made = { ...body, metadata }
    if (request.url.searchParams.get('dryRun') !== 'All') {
      store.set(key, resource === 'serviceaccounts' ? metadata : made)
    }
    return { status: 201, body: made }
  }

  function createToken(request: FakeRequest, account: string): FakeReply {
    const { kind, apiVersion, spec } = JSON.parse(request.body)
    const known = accounts.get(account)
    if (known === undefined) return status(404, 'NotFound', `serviceaccounts "${account}" not found`)
    if (kind !== 'TokenRequest' || apiVersion !== 'authentication.k8s.io/v1') {
      return status(400, 'BadRequest', 'not a TokenRequest')
    }
    if (!Number.isInteger(spec.expirationSeconds) || spec.expirationSeconds < 600) {
      return status(422, 'Invalid', 'may not specify a duration less than 10 minutes')
    }
    const until = Math.floor(Date.now() / 1000 + spec.expirationSeconds) * 1000
    const token = `eyJ${randomBytes(300).toString('base64url')}`
    tokens.set(token, { account, uid: known.uid, until })
    const expirationTimestamp = new Date(until).toISOString().replace('.000', '')
    return { status: 201, body: { kind, apiVersion, spec, status: { token, expirationTimestamp } } }
  }

  function list(request: FakeRequest, namespace: string, resource: string): FakeReply {
    const { searchParams: query } = request.url
    const [label = '', value = ''] = (query.get('labelSelector') ?? '').split('=')
    const all =
      resource === 'serviceaccounts'
        ? [...accounts.values()]
        : [...bindings.values()].map((one) => one.metadata)
    const found = all
      .filter((one) => one.namespace === namespace && (label === '' || one.labels[label] === value))
      .sort((left, right) => (left.name < right.name ? -1 : 1))
    const from = Number(query.get('continue') ?? 0)
    // Fewer than asked, as a server may: the pages are then many.
    const size = Math.min(Number(query.get('limit') ?? found.length), 2)
    const metadata = from + size < found.length && query.has('limit') ? { continue: String(from + size) } : {}
    const items = (query.has('limit') ? found.slice(from, from + size) : found).map((one) => ({
      metadata: one,
    }))
    return { status: 200, body: { kind: 'List', apiVersion: 'v1', metadata, items } }
  }

  function asAgent(account: string, { line }: FakeRequest): FakeReply {
    const [, method = '', namespace = ''] =
      /^(GET|DELETE) \/api\/v1\/namespaces\/([^/]+)\/pods/.exec(line) ?? []
    const [home, name] = account.split('/')
    const mine = [...bindings.values()].filter(
      ({ metadata, subjects }) =>
        metadata.namespace === namespace &&
        subjects.some((one) => one.kind === 'ServiceAccount' && one.name === name && one.namespace === home),
    )
    const verbs = mine.flatMap(({ roleRef }) => VERBS[roleRef.name] ?? [])
    if (!verbs.includes(method.toLowerCase())) return status(403, 'Forbidden', 'pods is forbidden')
    return { status: 200, body: { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [] } }
  }

  async function answer(request: FakeRequest): Promise<FakeReply> {
    const { line, method } = request
    const user = await userOf(request.headers.authorization?.replace(/^Bearer /, '') ?? '')
    if (user === undefined) return status(401, 'Unauthorized', 'Unauthorized')
    if (user !== 'mayfly') return asAgent(user, request)
    if (line === 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews') {
      const { spec } = JSON.parse(request.body)
      const { verb, resource, subresource } = spec.resourceAttributes
      const what = subresource === undefined ? resource : `${resource}/${subresource}`
      return {
        status: 201,
        body: { kind: 'SelfSubjectAccessReview', status: { allowed: !forbidden.has(`${verb} ${what}`) } },
      }
    }
    const path = line.slice(method.length + 1).replace(RBAC, '/api/v1')
    const [, namespace = '', resource = '', name, token] =
      /^\/api\/v1\/namespaces\/([^/]+)\/(serviceaccounts|rolebindings)(?:\/([^/]+))?(\/token)?$/.exec(path) ??
      []
    if (resource === '') return status(404, 'NotFound', 'the server could not find the requested resource')
    const verb = { POST: 'create', GET: 'list', DELETE: 'delete' }[method] ?? method
    const what = token === undefined ? resource : `${resource}/token`
    if (forbidden.has(`${verb} ${what}`)) return status(403, 'Forbidden', `cannot ${verb} ${what}`)
    const key = `${namespace}/${name}`
    if (token !== undefined) return createToken(request, key)
    if (method === 'POST') return create(request, namespace, resource)
    if (method === 'GET') return list(request, namespace, resource)
    const store: Map<string, unknown> = resource === 'serviceaccounts' ? accounts : bindings
    if (!store.delete(key)) return status(404, 'NotFound', `${resource} "${name}" not found`)
    return { status: 200, body: { kind: 'Status', apiVersion: 'v1', status: 'Success' } }
  }

  const server = await startFake(answer, options.tls)
  return { ...server, accounts, bindings, tokens, login, forbidden, bindable }
}
