import type { Authorizer } from './authorize.ts'
import { pages } from './paging.ts'
import { type CallOptions, path } from './send.ts'
import type {
  Agent,
  AgentKey,
  Approval,
  AuditEntry,
  AuditFilter,
  Backend,
  ChangeBackend,
  CreateAgent,
  CreateBackend,
  CreatedAgent,
  CredentialFilter,
  EnrollmentStatus,
  Explanation,
  Kind,
  PageOptions,
  PendingEnrollment,
  Plugin,
  Policy,
  Token,
} from './wire.ts'

/** `/v1/admin`: needs the admin scope of each, the local host, or the admin token. */
export function createAdmin(authorizer: Authorizer) {
  return {
    agents: agentCalls(authorizer),
    backends: backendCalls(authorizer),
    kinds: (options: PageOptions = {}) => pages<Kind>(authorizer, '/v1/admin/kinds', {}, options),
    tokens: {
      /** Newest first. */
      list: (filter: CredentialFilter = {}, options: PageOptions = {}) =>
        pages<Token>(authorizer, '/v1/admin/tokens', { ...filter }, options),
      revoke: async (id: string, options: CallOptions = {}): Promise<void> => {
        await authorizer.call({ method: 'DELETE', path: path`/v1/admin/tokens/${id}`, ...options })
      },
    },
    /** Newest first. */
    audit: (filter: AuditFilter = {}, options: PageOptions = {}) =>
      pages<AuditEntry>(authorizer, '/v1/admin/audit', { ...filter }, options),
    pending: pendingCalls(authorizer),
    policies: (options: PageOptions = {}) => pages<Policy>(authorizer, '/v1/admin/policies', {}, options),
    /** What would become of an enrollment with this name and these scopes, and why. */
    explainPolicy: async (
      asked: { name: string; scopes?: readonly string[] | undefined },
      options: CallOptions = {},
    ): Promise<Explanation> => {
      const query = { name: asked.name, scope: asked.scopes }
      const call = { method: 'GET', path: '/v1/admin/policies/explain', query, ...options } as const
      return (await authorizer.call<Explanation>(call)).body
    },
    plugins: pluginCalls(authorizer),
    keys: {
      /** The public signing keys of all agents. */
      list: (options: PageOptions = {}) => pages<AgentKey>(authorizer, '/v1/admin/keys', {}, options),
      /** A new key for the tokens of the server; `grace` (a duration): the old one verifies that long. */
      rotate: async (
        body: { grace?: string } = {},
        options: CallOptions = {},
      ): Promise<{ key_id: string; previous_valid_until: string | null }> => {
        const call = { method: 'POST', path: '/v1/admin/keys/rotate', body, ...options } as const
        return (await authorizer.call<{ key_id: string; previous_valid_until: string | null }>(call)).body
      },
    },
  }
}

function agentCalls(authorizer: Authorizer) {
  return {
    /** Oldest first. */
    list: (options: PageOptions = {}) => pages<Agent>(authorizer, '/v1/admin/agents', {}, options),
    create: async (body: CreateAgent, options: CallOptions = {}): Promise<CreatedAgent> =>
      (await authorizer.call<CreatedAgent>({ method: 'POST', path: '/v1/admin/agents', body, ...options }))
        .body,
    show: async (name: string, options: CallOptions = {}): Promise<Agent> =>
      (await authorizer.call<Agent>({ method: 'GET', path: path`/v1/admin/agents/${name}`, ...options }))
        .body,
    delete: async (name: string, options: CallOptions = {}): Promise<void> => {
      await authorizer.call({ method: 'DELETE', path: path`/v1/admin/agents/${name}`, ...options })
    },
  }
}

/** `check: false` stores a backend without trying its upstream. */
export interface CheckOptions extends CallOptions {
  readonly check?: boolean | undefined
}
/** `force`: it is the same upstream under another address, whatever is alive there. */
export interface ChangeOptions extends CheckOptions {
  readonly force?: boolean | undefined
}
/** `force`: revokes what is alive first. */
export interface ForceOptions extends CallOptions {
  readonly force?: boolean | undefined
}

function backendCalls(authorizer: Authorizer) {
  return {
    list: (options: PageOptions = {}) => pages<Backend>(authorizer, '/v1/admin/backends', {}, options),
    create: async (body: CreateBackend, { check, signal }: CheckOptions = {}): Promise<Backend> => {
      const call = { method: 'POST', path: '/v1/admin/backends', query: { check }, body, signal } as const
      return (await authorizer.call<Backend>(call)).body
    },
    show: async (name: string, options: CallOptions = {}): Promise<Backend> =>
      (await authorizer.call<Backend>({ method: 'GET', path: path`/v1/admin/backends/${name}`, ...options }))
        .body,
    update: async (
      name: string,
      body: ChangeBackend,
      { check, force, signal }: ChangeOptions = {},
    ): Promise<Backend> => {
      const call = {
        method: 'PUT',
        path: path`/v1/admin/backends/${name}`,
        query: { check, force },
        body,
        signal,
      } as const
      return (await authorizer.call<Backend>(call)).body
    },
    delete: async (name: string, { force, signal }: ForceOptions = {}): Promise<void> => {
      const query = { force }
      await authorizer.call({ method: 'DELETE', path: path`/v1/admin/backends/${name}`, query, signal })
    },
  }
}

function pendingCalls(authorizer: Authorizer) {
  const decide = async (url: string, body: Approval | { reason?: string }, options: CallOptions) =>
    (await authorizer.call<PendingEnrollment>({ method: 'POST', path: url, body, ...options })).body
  return {
    /** Oldest first; with a status, decided ones. */
    list: (filter: { status?: EnrollmentStatus } = {}, options: PageOptions = {}) =>
      pages<PendingEnrollment>(authorizer, '/v1/admin/pending', { ...filter }, options),
    approve: (id: string, body: Approval = {}, options: CallOptions = {}): Promise<PendingEnrollment> =>
      decide(path`/v1/admin/pending/${id}/approve`, body, options),
    reject: (
      id: string,
      body: { reason?: string } = {},
      options: CallOptions = {},
    ): Promise<PendingEnrollment> => decide(path`/v1/admin/pending/${id}/reject`, body, options),
  }
}

function pluginCalls(authorizer: Authorizer) {
  return {
    list: (options: PageOptions = {}) => pages<Plugin>(authorizer, '/v1/admin/plugins', {}, options),
    reloadAll: async (options: CallOptions = {}): Promise<{ loaded: number; plugins: Plugin[] }> => {
      const call = { method: 'POST', path: '/v1/admin/plugins/reload', ...options } as const
      return (await authorizer.call<{ loaded: number; plugins: Plugin[] }>(call)).body
    },
    reload: async (
      name: string,
      options: CallOptions = {},
    ): Promise<{ reloaded: string; version: string }> => {
      const call = { method: 'POST', path: path`/v1/admin/plugins/${name}/reload`, ...options } as const
      return (await authorizer.call<{ reloaded: string; version: string }>(call)).body
    },
  }
}
