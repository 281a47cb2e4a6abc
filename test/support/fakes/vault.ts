import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bestRules, DEFAULT_POLICY, matches, type Rule, readPolicy, SUDO } from './vault-policy.ts'

type Json = Record<string, unknown>

export interface VaultToken {
  readonly id: string
  readonly accessor: string
  readonly policies: readonly string[]
  readonly path: string
  /** Epoch ms; undefined: never. */
  readonly expiresAt: number | undefined
  readonly orphan: boolean
  readonly meta: Json
  readonly displayName: string
}

export interface FakeVault {
  readonly address: string
  readonly tokens: Map<string, VaultToken>
  readonly roles: Map<string, Json>
  /** Live leases of dynamic secrets, by id, with the token that they end with. */
  readonly leases: Map<string, { readonly token: string; readonly username: string }>
  /** HCL, as `vault policy write` reads it. */
  writePolicy(name: string, hcl: string): void
  newToken(policies: readonly string[]): string
  newAppRole(
    policies: readonly string[],
    seconds?: number,
  ): { readonly roleId: string; readonly secretId: string }
  /** Called before each request. Throws to cut the connection. */
  before: (method: string, path: string) => Promise<void>
  close(): Promise<void>
}

class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}
const denied = () => new Refused(403, 'permission denied')

/**
 * The part of Vault's HTTP API that tokens and dynamic secrets need, as its documentation (API, "Token auth method", "/sys/leases",
 * "/sys/capabilities-self", "Policies") and the token store of OpenBao say: access by policies with parameters, paths that need
 * sudo, policies that must be a subset of the caller's, explicit lifetimes, leases that end with their token.
 */
export async function startFakeVault(): Promise<FakeVault> {
  const tokens = new Map<string, VaultToken>()
  const roles = new Map<string, Json>()
  const leases: FakeVault['leases'] = new Map()
  const policies = new Map<string, readonly Rule[]>([['default', readPolicy(DEFAULT_POLICY)]])
  const appRoles = new Map<string, { secretId: string; policies: readonly string[]; seconds: number }>()
  const random = (bytes = 18) => randomBytes(bytes).toString('base64url')

  function store(token: Omit<VaultToken, 'id' | 'accessor'>): VaultToken {
    const whole = { ...token, id: `hvs.${random(24)}`, accessor: random() }
    tokens.set(whole.id, whole)
    return whole
  }
  function endToken(id: string): void {
    tokens.delete(id)
    for (const [lease, { token }] of leases) if (token === id) leases.delete(lease)
  }
  function callerOf(request: IncomingMessage): VaultToken {
    const token = tokens.get(String(request.headers['x-vault-token']))
    if (token === undefined) throw denied()
    if (token.expiresAt !== undefined && token.expiresAt <= Date.now()) {
      endToken(token.id)
      throw denied()
    }
    return token
  }
  const rulesOf = (token: VaultToken) => token.policies.flatMap((name) => policies.get(name) ?? [])
  const capabilitiesOf = (token: VaultToken, path: string) => {
    if (token.policies.includes('root')) return ['root']
    const rules = bestRules(rulesOf(token), path)
    const all = [...new Set(rules.flatMap(({ capabilities }) => capabilities))].sort()
    return all.length === 0 || all.includes('deny') ? ['deny'] : all
  }

  function requireAccess(token: VaultToken, operation: string, path: string, body: Json): void {
    if (token.policies.includes('root')) return
    const has = capabilitiesOf(token, path)
    const needed = SUDO.test(path) ? [operation, 'sudo'] : [operation]
    if (!needed.every((one) => has.includes(one))) throw denied()
    for (const { denied: no, allowed } of bestRules(rulesOf(token), path)) {
      for (const [name, value] of Object.entries(body)) {
        if (no.includes(name)) throw denied()
        if (allowed === undefined) continue
        const patterns = allowed[name] ?? allowed['*']
        if (patterns === undefined) throw denied()
        if (patterns.length > 0 && !patterns.some((pattern) => matches(pattern, String(value))))
          throw denied()
      }
    }
  }

  function createToken(caller: VaultToken, roleName: string, body: Json): Json {
    const role = roles.get(roleName)
    if (role === undefined) throw new Refused(400, `unknown role ${roleName}`)
    if (body['id'] !== undefined)
      throw new Refused(400, 'root or sudo privileges required to specify token id')
    const wanted = (body['policies'] as string[] | undefined)?.map((name) => name.toLowerCase())
    const own = (role['allowed_policies'] as string[] | undefined) ?? []
    let given = wanted ?? [...caller.policies]
    if (own.length > 0) {
      if (!given.every((one) => own.includes(one))) {
        throw new Refused(400, "token policies must be subset of the role's allowed policies")
      }
    } else if (!caller.policies.includes('root') && !given.every((one) => caller.policies.includes(one))) {
      throw new Refused(400, 'child policies must be subset of parent')
    }
    if (body['no_default_policy'] === true) given = given.filter((one) => one !== 'default')
    else if (caller.policies.includes('default')) given = [...new Set([...given, 'default'])]
    const asked = secondsOf(body['ttl'] ?? MAX_TTL)
    const most = Math.min(secondsOf(role['token_explicit_max_ttl'] ?? MAX_TTL) || MAX_TTL, MAX_TTL)
    const seconds = Math.min(asked, most)
    const made = store({
      policies: given.sort(),
      path: `auth/token/create/${roleName}`,
      expiresAt: Date.now() + seconds * 1_000,
      orphan: role['orphan'] === true,
      meta: (body['meta'] ?? {}) as Json,
      displayName: `token-${String(body['display_name'] ?? '')}`,
    })
    return authOf(made, seconds)
  }

  function route(
    request: IncomingMessage,
    path: string,
    query: URLSearchParams,
    body: Json,
  ): Json | undefined {
    const [, appRole] = /^auth\/approle\/login$/.exec(path) === null ? [] : [path, String(body['role_id'])]
    if (appRole !== undefined) {
      const known = appRoles.get(appRole)
      if (known === undefined || known.secretId !== body['secret_id'])
        throw new Refused(400, 'invalid role or secret ID')
      const expiresAt = Date.now() + known.seconds * 1_000
      const login = { path, expiresAt, orphan: true, meta: {}, displayName: 'approle' }
      return authOf(store({ ...login, policies: [...known.policies, 'default'] }), known.seconds)
    }
    const caller = callerOf(request)
    const isList = query.get('list') === 'true'
    const [, role] = /^auth\/token\/roles\/(\w+)$/.exec(path) ?? []
    const writes = role !== undefined && !roles.has(role) ? 'create' : 'update'
    const operation = { GET: isList ? 'list' : 'read', DELETE: 'delete' }[request.method ?? ''] ?? writes
    requireAccess(caller, operation, path, body)
    if (path === 'auth/token/lookup-self') return { data: lookup(caller) }
    if (path === 'auth/token/revoke-self') return void endToken(caller.id)
    if (path === 'sys/capabilities-self') {
      const paths = body['paths'] as string[]
      return { data: Object.fromEntries(paths.map((one) => [one, capabilitiesOf(caller, one)])) }
    }
    if (path === 'auth/token/roles' && isList) {
      const keys = [...roles.keys()].sort().filter((name) => name > (query.get('after') ?? ''))
      if (keys.length === 0) throw new Refused(404, '')
      return { data: { keys: keys.slice(0, Number(query.get('limit') ?? keys.length)) } }
    }
    if (role !== undefined && request.method === 'DELETE') return void roles.delete(role)
    if (role !== undefined) return void roles.set(role, { ...roles.get(role), ...body })
    const [, create] = /^auth\/token\/create\/(\w+)$/.exec(path) ?? []
    if (create !== undefined) return createToken(caller, create, body)
    const [, prefix] = /^sys\/leases\/revoke-prefix\/(.+)$/.exec(path) ?? []
    if (prefix !== undefined) {
      for (const token of tokens.values()) if (`${token.path}/`.startsWith(`${prefix}/`)) endToken(token.id)
      return
    }
    if (path === 'sys/leases/revoke') return void leases.delete(String(body['lease_id']))
    return readPath(caller, path)
  }

  function readPath(caller: VaultToken, path: string): Json {
    const envelope = { request_id: random(), renewable: false, wrap_info: null, warnings: null, auth: null }
    if (path.startsWith('kv/'))
      return { ...envelope, lease_id: '', lease_duration: 2_764_800, data: { value: path } }
    if (!path.startsWith('database/creds/')) throw new Refused(404, `no handler for route "${path}"`)
    const username = `v-token-${random(8)}`
    const lease = `${path}/${random()}`
    leases.set(lease, { token: caller.id, username })
    const data = { username, password: random(24) }
    return { ...envelope, lease_id: lease, renewable: true, lease_duration: LEASE_SECONDS, data }
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://vault')
    const path = url.pathname.replace(/^\/v1\//, '')
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      await fake.before(request.method ?? '', path)
      const reply = (status: number, body?: Json) =>
        response
          .writeHead(status, { 'content-type': 'application/json' })
          .end(body === undefined ? '' : JSON.stringify(body))
      try {
        if (request.headers['x-vault-request'] !== 'true')
          throw new Refused(412, "required 'X-Vault-Request' header")
        const text = Buffer.concat(chunks).toString()
        const body = text === '' ? {} : (JSON.parse(text) as Json)
        const answer = route(request, path, url.searchParams, body)
        reply(answer === undefined ? 204 : 200, answer)
      } catch (error) {
        const known = error instanceof Refused ? error : new Refused(500, String(error))
        reply(known.status, { errors: known.message === '' ? [] : [known.message] })
      }
    })().catch(() => request.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const fake: FakeVault = {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokens,
    roles,
    leases,
    before: async () => undefined,
    writePolicy: (name, hcl) => void policies.set(name, readPolicy(hcl)),
    newToken: (names) =>
      store({
        policies: names,
        path: 'auth/token/create',
        expiresAt: undefined,
        orphan: true,
        meta: {},
        displayName: 'token',
      }).id,
    newAppRole(names, seconds = 3_600) {
      const [roleId, secretId] = [random(), random()]
      appRoles.set(roleId, { secretId, policies: names, seconds })
      return { roleId, secretId }
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return fake
}

const MAX_TTL = 2_764_800
const LEASE_SECONDS = 3_600
function secondsOf(value: unknown): number {
  const [, count = '', unit = 's'] = /^(\d+)([smh])?$/.exec(String(value)) ?? []
  if (count === '') throw new Refused(400, 'time: invalid duration')
  return Number(count) * ({ s: 1, m: 60, h: 3_600 }[unit] ?? 1)
}

function lookup({ accessor, policies, expiresAt, orphan, meta, path, displayName, id }: VaultToken): Json {
  const expires = expiresAt === undefined ? null : new Date(expiresAt).toISOString()
  return { accessor, policies, expire_time: expires, orphan, meta, path, display_name: displayName, id }
}

function authOf(token: VaultToken, seconds: number): Json {
  const { id, accessor, policies, meta, orphan } = token
  const auth = {
    client_token: id,
    accessor,
    policies,
    token_policies: policies,
    metadata: meta,
    lease_duration: seconds,
    renewable: false,
    entity_id: '',
    token_type: 'service',
    orphan,
    num_uses: 0,
  }
  return {
    request_id: '1',
    lease_id: '',
    renewable: false,
    lease_duration: 0,
    data: null,
    warnings: null,
    auth,
  }
}
