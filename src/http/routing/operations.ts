import type { ProblemCode } from '../../domain/problems.ts'
import type { RouteName } from './route-table.ts'

/** What the OpenAPI document says of a route beside its schema. A route without an entry does not compile. */
export interface Operation {
  /** The `operationId`: what generated clients call it. */
  readonly id: string
  /** Errors beside those that every such route has (`openapi-errors.ts`). */
  readonly errors?: readonly ProblemCode[]
  /** What a value of the reply is good for: operation → its parameter and a runtime expression. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

const UPSTREAM = ['backend_error', 'backend_unavailable', 'backend_timeout'] as const
const ISSUE = [
  'ttl_exceeded',
  'scope_not_allowed',
  'insufficient_scope',
  'backend_not_found',
  'conflict',
  'audit_unavailable',
  ...UPSTREAM,
] as const
const USE_KEY = ['not_allowed', 'insufficient_scope', 'conflict', 'audit_unavailable'] as const
const REVOKE = ['credential_not_found', 'conflict'] as const
const CONFIGURE = ['conflict', 'not_allowed', 'insufficient_scope', ...UPSTREAM] as const

const body = (field: string) => `$response.body#/${field}`
const credential = (id: string) => ({ getCredential: { id: body(id) }, revokeCredential: { id: body(id) } })
const ownCredential = (id: string) => ({ ...credential(id), revokeActiveCredential: { id: body(id) } })
const agent = {
  getAgent: { name: body('name') },
  changeAgent: { name: body('name') },
  rotateAgent: { name: body('name') },
  deleteAgent: { name: body('name') },
}
const backend = {
  getBackend: { name: body('name') },
  changeBackend: { name: body('name') },
  deleteBackend: { name: body('name') },
  issueCredentialOf: { backend: body('name') },
}
const pending = {
  approveEnrollment: { id: body('0/id') },
  rejectEnrollment: { id: body('0/id') },
}

export const OPERATIONS: Readonly<Record<RouteName, Operation>> = {
  'GET /': { id: 'showHome' },
  'GET /health': { id: 'getHealth' },
  'GET /readyz': { id: 'getReadiness' },
  'GET /metrics': { id: 'getMetrics' },
  'GET /openapi.json': { id: 'getOpenApi' },
  'GET /docs': { id: 'showDocs' },
  'GET /docs/scalar.js': { id: 'getDocsScript' },
  'GET /.well-known/openid-configuration': { id: 'getOpenIdConfiguration' },
  'GET /.well-known/oauth-authorization-server': { id: 'getAuthorizationServer' },
  'GET /.well-known/jwks.json': { id: 'getKeys' },
  'GET /backends/:backend/.well-known/openid-configuration': {
    id: 'getBackendOpenIdConfiguration',
    errors: ['not_found'],
  },
  'GET /backends/:backend/.well-known/jwks.json': { id: 'getBackendKeys', errors: ['not_found'] },
  'GET /backends/:backend/revoked': { id: 'getRevocationList', errors: ['not_found'] },
  'GET /backends/:backend/token': {
    id: 'createRegistryToken',
    errors: [
      'unauthorized',
      'not_found',
      'conflict',
      'rate_limited',
      'backend_unavailable',
      'audit_unavailable',
    ],
  },

  'POST /oauth/token': { id: 'createToken' },
  'POST /oauth/introspect': { id: 'introspectToken' },
  'POST /oauth/revoke': { id: 'revokeToken' },

  'POST /api/v1/credentials': { id: 'issueCredential', errors: ISSUE, links: ownCredential('id') },
  'GET /api/v1/credentials/:id': {
    id: 'getCredential',
    errors: ['credential_not_found'],
    links: { revokeCredential: { id: body('id') }, getBackendInfo: { id: body('backend') } },
  },
  'DELETE /api/v1/credentials/:id': {
    id: 'revokeCredential',
    errors: REVOKE,
    links: { getCredential: { id: body('id') } },
  },
  'GET /api/v1/backends': {
    id: 'listBackendInfos',
    links: { issueCredentialOf: { backend: body('backends/0/id') } },
  },
  'GET /api/v1/backends/:id': {
    id: 'getBackendInfo',
    errors: ['backend_not_found'],
    links: { issueCredentialOf: { backend: body('id') } },
  },
  'GET /api/v1/audit': { id: 'queryAudit', links: { queryAudit: { cursor: body('next_cursor') } } },

  'GET /v1/status': { id: 'getStatus', links: ownCredential('active_credentials/0/id') },
  'POST /v1/credentials/:backend': { id: 'issueCredentialOf', errors: ISSUE, links: ownCredential('id') },
  'GET /v1/credentials/:backend': {
    id: 'issueCredentialByGet',
    errors: [...ISSUE, 'method_not_allowed'],
    links: ownCredential('id'),
  },
  'GET /v1/active': { id: 'listActiveCredentials', links: ownCredential('0/id') },
  'DELETE /v1/active/:id': { id: 'revokeActiveCredential', errors: REVOKE },
  'GET /v1/signing-key': { id: 'getSigningKey', errors: USE_KEY },
  'POST /v1/sign': { id: 'signObject', errors: USE_KEY },
  'DELETE /v1/self': { id: 'deleteSelf', errors: ['insufficient_scope'] },
  'POST /v1/request': {
    id: 'requestScopes',
    errors: ['insufficient_scope', 'conflict', 'rate_limited'],
    links: {
      getRequest: { id: body('id') },
      approveEnrollment: { id: body('id') },
      rejectEnrollment: { id: body('id') },
    },
  },
  'GET /v1/request/:id': { id: 'getRequest', errors: ['enrollment_not_found'] },
  'POST /v1/enroll': {
    id: 'enroll',
    errors: ['conflict', 'rate_limited'],
    links: {
      pollEnrollment: { id: body('id') },
      approveEnrollment: { id: body('id') },
      rejectEnrollment: { id: body('id') },
    },
  },
  'GET /v1/enroll/:id/status': {
    id: 'pollEnrollment',
    errors: ['unauthorized', 'enrollment_not_found', 'gone', 'conflict', 'rate_limited', 'audit_unavailable'],
  },

  'GET /v1/admin/agents': {
    id: 'listAgents',
    links: { getAgent: { name: body('0/name') }, deleteAgent: { name: body('0/name') } },
  },
  'POST /v1/admin/agents': { id: 'createAgent', errors: ['conflict'], links: agent },
  'GET /v1/admin/agents/:name': { id: 'getAgent', errors: ['agent_not_found'], links: agent },
  'PATCH /v1/admin/agents/:name': {
    id: 'changeAgent',
    errors: ['agent_not_found', 'insufficient_scope', 'conflict'],
    links: agent,
  },
  'POST /v1/admin/agents/:name/rotate': {
    id: 'rotateAgent',
    errors: ['agent_not_found', 'insufficient_scope', 'conflict'],
    links: agent,
  },
  'DELETE /v1/admin/agents/:name': { id: 'deleteAgent', errors: ['agent_not_found', 'conflict'] },
  'GET /v1/admin/backends': { id: 'listBackends', links: { getBackend: { name: body('0/name') } } },
  'POST /v1/admin/backends': { id: 'createBackend', errors: CONFIGURE, links: backend },
  'GET /v1/admin/backends/:name': { id: 'getBackend', errors: ['backend_not_found'], links: backend },
  'PUT /v1/admin/backends/:name': {
    id: 'changeBackend',
    errors: ['backend_not_found', ...CONFIGURE],
    links: backend,
  },
  'DELETE /v1/admin/backends/:name': {
    id: 'deleteBackend',
    errors: ['backend_not_found', 'conflict'],
    links: { getBackend: { name: body('name') } },
  },
  'POST /v1/admin/backends/:name/rotate-root': {
    id: 'rotateRoot',
    errors: ['backend_not_found', 'conflict', 'insufficient_scope', ...UPSTREAM],
    links: backend,
  },
  'POST /v1/admin/backends/:name/reconcile': {
    id: 'reconcileBackend',
    errors: ['backend_not_found', 'conflict', 'insufficient_scope', ...UPSTREAM],
    links: backend,
  },
  'GET /v1/admin/kinds': { id: 'listKinds' },
  'GET /v1/admin/tokens': {
    id: 'listCredentials',
    links: { revokeAnyCredential: { id: body('0/id') }, ...credential('0/id') },
  },
  'DELETE /v1/admin/tokens/:id': { id: 'revokeAnyCredential', errors: REVOKE },
  'GET /v1/admin/audit': { id: 'queryWholeAudit' },
  'GET /v1/admin/pending': { id: 'listPending', links: pending },
  'POST /v1/admin/pending/:id/approve': {
    id: 'approveEnrollment',
    errors: ['enrollment_not_found', 'agent_not_found', 'conflict', 'gone'],
    links: { getAgent: { name: body('name') } },
  },
  'POST /v1/admin/pending/:id/reject': {
    id: 'rejectEnrollment',
    errors: ['enrollment_not_found', 'conflict', 'gone'],
  },
  'GET /v1/admin/policies': { id: 'listPolicies' },
  'GET /v1/admin/policies/explain': { id: 'explainPolicy' },
  'GET /v1/admin/plugins': { id: 'listPlugins', links: { reloadPlugin: { name: body('0/name') } } },
  'POST /v1/admin/plugins': {
    id: 'addPlugin',
    errors: ['not_allowed', 'conflict'],
    links: { reloadPlugin: { name: body('name') }, removePlugin: { name: body('name') } },
  },
  'DELETE /v1/admin/plugins/:name': { id: 'removePlugin', errors: ['not_allowed', 'not_found', 'conflict'] },
  'POST /v1/admin/plugins/reload': {
    id: 'reloadPlugins',
    errors: ['conflict'],
    links: { reloadPlugin: { name: body('plugins/0/name') } },
  },
  'POST /v1/admin/plugins/:name/reload': { id: 'reloadPlugin', errors: ['not_found', 'conflict'] },
  'GET /v1/admin/keys': { id: 'listAgentKeys', links: { getAgent: { name: body('0/name') } } },
  'POST /v1/admin/keys/rotate': { id: 'rotateKeys', errors: ['conflict'] },
}
