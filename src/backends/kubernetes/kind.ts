import { BackendError, denied, unavailable, unsupported } from '../../domain/backend-error.ts'
import { isObject } from '../../domain/formats/json.ts'
import { namedAccounts } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import { endingAt } from '../issued.ts'
import { notUnderstood, textIn } from '../json-api.ts'
import type { Handle, Host, Issued, IssueRequest, ListedPage } from '../kind.ts'
import { type Client, createClient, ROLE_BINDINGS, SERVICE_ACCOUNTS } from './client.ts'
import { type Config, config, type Grant, grantsOf, isValid, requireConsistent } from './config.ts'
import { usesOf } from './uses.ts'

/** Names upstream take no underscore ("Object Names and IDs", RFC 1123 label names). */
const PREFIX = 'mf-'
const accounts = namedAccounts('name', 'a service account', PREFIX)
const MANAGED = 'app.kubernetes.io/managed-by'
const CREDENTIAL = 'mayfly.dev/credential'
const EXPIRES = 'mayfly.dev/expires-at'
/** The API server refuses less (TokenRequestSpec, `expirationSeconds`). */
const MIN_TOKEN_S = 600
const RBAC = 'rbac.authorization.k8s.io'
const PAGE = '200'

/**
 * A service account per credential, bound to roles in namespaces, with one token (TokenRequest API). The token is worthless
 * once its service account is gone ("Managing Service Accounts", Bound service account tokens).
 */
export const kubernetes = defineKind({
  type: 'kubernetes',
  title: 'Kubernetes',
  config,
  revocation: 'exact',
  scopes: {
    valid: isValid,
    gives: (settings, scope) => grantsOf(settings, scope).length > 0,
    forms: [
      { form: '<namespace>:view', gives: 'do in a namespace what the cluster role "view" permits' },
      { form: '<namespace>:role/<role>', gives: 'do what a role of the namespace permits' },
      { form: '<namespace>', gives: 'do in a namespace what all roles of the backend permit' },
      { form: '*', gives: 'do so in all namespaces of the backend' },
    ],
    help:
      '<namespace>:<cluster role> or <namespace>:role/<role>, of the namespaces and roles that the backend grants. ' +
      'Without a role it is all roles of the backend; * is all namespaces.',
  },
  environment: { KUBECONFIG: { file: '{kubeconfig}' } },
  uses: usesOf,
  validate: requireConsistent,
  open: openKubernetes,
})

async function openKubernetes(settings: Config, host: Host): Promise<Opened> {
  const client = createClient(settings, host)
  const revoke = (handle: Handle, signal: AbortSignal) => end(client, settings, handle, signal)
  return {
    check: (signal) => preflight(client, settings, signal),
    issue: async (request, signal) => issue(client, settings, host, request, revoke, signal),
    revoke,
    recover: accounts.recover,
    list: (after, signal) => list(client, settings, after, signal),
  }
}

async function issue(
  client: Client,
  settings: Config,
  host: Host,
  { credentialId, scopes, expiresAt }: IssueRequest<unknown>,
  revoke: (handle: Handle, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<Issued> {
  const name = accounts.nameOf(credentialId)
  const grants = plan(settings, scopes)
  const namespaces = [...new Set(grants.map(({ namespace }) => namespace))]
  const handle = { name, namespaces: namespaces.join(' ') }
  const metadata = {
    name,
    labels: { [MANAGED]: 'mayfly', [CREDENTIAL]: name },
    annotations: { [EXPIRES]: new Date(expiresAt).toISOString() },
  }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata, automountServiceAccountToken: false }
  await client.create(SERVICE_ACCOUNTS(settings.home), account, signal)
  const [token, ...bound] = await Promise.allSettled([
    createToken(client, settings, name, expiresAt - host.now(), signal),
    ...grants.map((grant, index) =>
      client.create(ROLE_BINDINGS(grant.namespace), bindingOf(settings, name, grant, index), signal),
    ),
  ])
  const failed = bound.find((one) => one.status === 'rejected')
  if (token.status === 'fulfilled' && failed === undefined) {
    return present(client, settings, { name, handle, namespaces, expiresAt, ...token.value })
  }
  // A refusal is certain only when nothing is left of what was made before it.
  await revoke(handle, signal).catch((cause: unknown) => {
    throw unavailable('Kubernetes refused, and what was made before may be there.', {
      cause,
    })
  })
  throw failed?.reason ?? (token.status === 'rejected' ? token.reason : undefined)
}

/** Throws `unsupported` for a scope that the backend does not grant. */
function plan(settings: Config, scopes: readonly string[]): Grant[] {
  const all = scopes.flatMap((scope) => {
    const grants = isValid(scope) ? grantsOf(settings, scope) : []
    if (grants.length > 0) return grants
    throw unsupported('A scope names a namespace or a role that the backend does not grant.')
  })
  return [...new Map(all.map((grant) => [`${grant.namespace}:${grant.role}`, grant])).values()]
}

function bindingOf({ home }: Config, name: string, { role }: Grant, index: number) {
  const isLocal = role.startsWith('role/')
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name: `${name}-${index}`, labels: { [MANAGED]: 'mayfly', [CREDENTIAL]: name } },
    roleRef: { apiGroup: RBAC, kind: isLocal ? 'Role' : 'ClusterRole', name: role.replace(/^role\//, '') },
    subjects: [{ kind: 'ServiceAccount', name, namespace: home }],
  }
}

async function createToken(
  client: Client,
  settings: Config,
  name: string,
  ttlMs: number,
  signal: AbortSignal,
) {
  const { home, audiences } = settings
  const spec = {
    expirationSeconds: Math.max(MIN_TOKEN_S, Math.floor(ttlMs / 1000)),
    ...(audiences && { audiences }),
  }
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }
  const { status } = await client.create(`${SERVICE_ACCOUNTS(home)}/${name}/token`, request, signal)
  const body = isObject(status) ? status : undefined
  const until = Date.parse(textIn('Kubernetes', body, 'expirationTimestamp'))
  if (Number.isNaN(until)) throw notUnderstood('Kubernetes')
  return { token: textIn('Kubernetes', body, 'token'), until }
}

interface Made {
  readonly name: string
  readonly handle: Handle
  readonly namespaces: readonly string[]
  readonly expiresAt: number
  readonly token: string
  readonly until: number
}

function present({ base: server }: Client, { home, ca }: Config, made: Made): Issued {
  const { name, token, until, expiresAt, handle } = made
  const namespace = made.namespaces[0] ?? 'default'
  const authority =
    ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  // JSON is YAML.
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'mayfly', cluster: { server, ...authority } }],
    users: [{ name, user: { token } }],
    contexts: [{ name: 'mayfly', context: { cluster: 'mayfly', user: name, namespace } }],
    'current-context': 'mayfly',
  })
  return {
    fields: { token, server, namespace, ...(ca === undefined ? {} : { ca }), kubeconfig },
    ...endingAt(until, expiresAt),
    handle,
    facts: { service_account: `${home}/${name}` },
  }
}

/** First the service account, which ends the token, then its bindings. */
async function end(client: Client, settings: Config, handle: Handle, signal: AbortSignal): Promise<void> {
  const { namespaces } = handle
  const name = accounts.nameIn(handle)
  await client.remove(`${SERVICE_ACCOUNTS(settings.home)}/${name}`, signal)
  const where = typeof namespaces === 'string' ? namespaces.split(' ').filter(Boolean) : settings.namespaces
  await Promise.all(
    where.map(async (namespace) => {
      const path = ROLE_BINDINGS(namespace)
      const { items } = await client.list(path, { labelSelector: `${CREDENTIAL}=${name}` }, signal)
      const names = items.map((item) => String(item['name']))
      // Even with our label: only objects with our names are ever deleted.
      const ours = names.filter(
        (one) => one.startsWith(`${name}-`) && /^\d+$/.test(one.slice(name.length + 1)),
      )
      await Promise.all(ours.map((one) => client.remove(`${path}/${one}`, signal)))
    }),
  )
}

async function list(
  client: Client,
  { home }: Config,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  const query = { labelSelector: `${MANAGED}=mayfly`, limit: PAGE, ...(after && { continue: after }) }
  const page = await client.list(SERVICE_ACCOUNTS(home), query, signal)
  const items = page.items.flatMap(({ name, annotations }) =>
    accounts.listed(name, Date.parse(String(isObject(annotations) ? annotations[EXPIRES] : undefined))),
  )
  return { items, ...(page.next && { next: page.next }) }
}

/** Tries to create everything without creating it, and asks for the rights that ending needs. */
async function preflight(client: Client, settings: Config, signal: AbortSignal): Promise<string[]> {
  const { home, namespaces, roles } = settings
  const name = `${PREFIX}check`
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } }
  await client.create(SERVICE_ACCOUNTS(home), account, signal, true)
  const rbac = { group: RBAC, resource: 'rolebindings' }
  const needed = [
    ...['delete', 'list'].map((verb) => ({ verb, resource: 'serviceaccounts', namespace: home })),
    { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: home },
    ...namespaces.flatMap((namespace) => ['list', 'delete'].map((verb) => ({ verb, ...rbac, namespace }))),
  ]
  const answers = await Promise.all(needed.map((one) => client.may(one, signal)))
  const missing = needed.filter((_, index) => answers[index] === false)
  if (missing.length > 0) {
    const said = missing.map(
      (one) => `${one.verb} ${one.resource}${'subresource' in one ? '/token' : ''} in ${one.namespace}`,
    )
    throw denied(`The login of Mayfly may not: ${said.join(', ')}.`)
  }
  const pairs = namespaces.flatMap((namespace) => roles.map((role) => ({ namespace, role })))
  await Promise.all(
    pairs.map((grant, index) =>
      client
        .create(ROLE_BINDINGS(grant.namespace), bindingOf(settings, name, grant, index), signal, true)
        .catch((error: unknown) => {
          if (!(error instanceof BackendError) || !/denied|misconfigured/.test(error.fault)) throw error
          const message = `Mayfly cannot bind ${grant.role} in the namespace ${grant.namespace}: it does not exist, or the login may neither create role bindings there nor "bind" the role.`
          throw new BackendError(error.fault, message, { cause: error })
        }),
    ),
  )
  return []
}
