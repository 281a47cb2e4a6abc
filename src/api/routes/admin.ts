import { Type } from 'typebox'
import * as activity from '../activity.ts'
import * as admins from '../admin.ts'
import * as backends from '../admin-backends.ts'
import { AuditEntry, CredentialId } from '../api-v1.ts'
import * as enrollment from '../enrollment.ts'
import * as policies from '../policies.ts'
import { name, optionalBody } from '../shared.ts'
import { admin, leadsTo, REVOKE, type Route, UPSTREAM } from './route.ts'

const BackendParam = Type.Object({ name: name('Name of the backend.', 'orders') })

const ofAgents = admin('admin: agents')
const ofBackends = admin('admin: backends')
const ofTokens = admin('admin: tokens')
const ofAudit = admin('audit')
const ofEnrollments = admin('admin: enrollments')

const CONFIGURE = ['conflict', 'not_allowed', 'insufficient_scope', ...UPSTREAM] as const
const AT_UPSTREAM = ['backend_not_found', 'conflict', 'insufficient_scope', ...UPSTREAM] as const
const agentLinks = leadsTo('name', 'name', 'getAgent', 'changeAgent', 'rotateAgent', 'deleteAgent')
const backendLinks = {
  ...leadsTo('name', 'name', 'getBackend', 'changeBackend', 'deleteBackend'),
  ...leadsTo('backend', 'name', 'issueCredentialOf'),
}

/** `/v1/admin`. */
export const ADMIN = {
  'GET /v1/admin/agents': {
    ...ofAgents('admin:agents:read'),
    id: 'listAgents',
    summary: 'All agents, oldest first',
    query: admins.PageQuery,
    replies: { 200: Type.Array(admins.Agent) },
    links: leadsTo('name', '0/name', 'getAgent', 'deleteAgent'),
  },
  'POST /v1/admin/agents': {
    ...ofAgents('admin:agents:write', 'agent.created'),
    confirm: true,
    id: 'createAgent',
    summary: 'Create an agent; its secrets are shown here and never again',
    body: admins.CreateAgent,
    replies: { 200: admins.CreatedAgent },
    errors: ['conflict'],
    links: agentLinks,
  },
  'GET /v1/admin/agents/:name': {
    ...ofAgents('admin:agents:read'),
    id: 'getAgent',
    summary: 'One agent',
    params: admins.NameParam,
    replies: { 200: admins.Agent },
    errors: ['agent_not_found'],
    links: agentLinks,
  },
  'PATCH /v1/admin/agents/:name': {
    ...ofAgents('admin:agents:write', 'agent.changed'),
    confirm: true,
    id: 'changeAgent',
    summary: 'Change the scopes, expiry, audiences, description or owner of an agent',
    description:
      'Removing and shortening take effect at once on all nodes. Nobody grants more than they hold.',
    params: admins.NameParam,
    body: admins.ChangeAgent,
    replies: { 200: admins.ChangedAgent },
    errors: ['agent_not_found', 'insufficient_scope', 'conflict'],
    links: agentLinks,
  },
  'POST /v1/admin/agents/:name/rotate': {
    ...ofAgents('admin:agents:write', 'agent.rotated'),
    confirm: true,
    id: 'rotateAgent',
    summary:
      'Replace the token and the client secret of an agent; the new ones are shown here and never again',
    description: 'Requires the scopes of the agent, because its new secrets can do what it can.',
    params: admins.NameParam,
    body: optionalBody(admins.RotateAgent),
    replies: { 200: admins.RotatedAgent },
    errors: ['agent_not_found', 'insufficient_scope', 'conflict'],
    links: agentLinks,
  },
  'DELETE /v1/admin/agents/:name': {
    ...ofAgents('admin:agents:write', 'agent.deleted'),
    confirm: true,
    id: 'deleteAgent',
    summary: 'Delete an agent; its token ends and its credentials are revoked',
    params: admins.NameParam,
    replies: { 204: Type.Null() },
    errors: ['agent_not_found', 'conflict'],
  },
  'GET /v1/admin/backends': {
    ...ofBackends('admin:backends:read'),
    id: 'listBackends',
    summary: 'All backends with their configuration, secrets redacted',
    query: admins.PageQuery,
    replies: { 200: Type.Array(backends.Backend) },
    links: leadsTo('name', '0/name', 'getBackend'),
  },
  'POST /v1/admin/backends': {
    ...ofBackends('admin:backends:write', 'backend.created'),
    id: 'createBackend',
    summary: 'Configure a backend; it is tried before it is stored',
    query: backends.CheckQuery,
    body: backends.CreateBackend,
    replies: { 200: backends.Backend },
    errors: CONFIGURE,
    links: backendLinks,
  },
  'GET /v1/admin/backends/:name': {
    ...ofBackends('admin:backends:read'),
    id: 'getBackend',
    summary: 'One backend',
    params: BackendParam,
    replies: { 200: backends.Backend },
    errors: ['backend_not_found'],
    links: backendLinks,
  },
  'PUT /v1/admin/backends/:name': {
    ...ofBackends('admin:backends:write', 'backend.changed'),
    id: 'changeBackend',
    summary:
      'Change a backend. Fields that are left out keep their values; config is replaced, but keeps secrets that are left out or sent as [redacted]',
    params: BackendParam,
    query: backends.ChangeQuery,
    body: backends.ChangeBackend,
    replies: { 200: backends.Backend },
    errors: ['backend_not_found', ...CONFIGURE],
    links: backendLinks,
  },
  'DELETE /v1/admin/backends/:name': {
    ...ofBackends('admin:backends:write', 'backend.deleted'),
    confirm: true,
    id: 'deleteBackend',
    summary: 'Delete a backend; with very many credentials it answers 202, and the deletion goes on',
    params: BackendParam,
    query: backends.ForceQuery,
    replies: { 202: backends.BackendDeletion, 204: Type.Null() },
    errors: ['backend_not_found', 'conflict'],
    links: leadsTo('name', 'name', 'getBackend'),
  },
  'POST /v1/admin/backends/:name/check': {
    ...ofBackends('admin:backends:write', 'backend.checked'),
    id: 'checkBackend',
    summary: 'Log in to the upstream of a backend, and make the first call of issuing that changes nothing',
    description:
      'The reply is 200 whether the backend is up or down: see `health`. An open breaker does not stop a check, and a success closes it.',
    params: BackendParam,
    replies: { 200: backends.CheckedBackend },
    errors: ['backend_not_found', 'insufficient_scope', 'audit_unavailable', 'conflict'],
    links: backendLinks,
  },
  'POST /v1/admin/backends/:name/try': {
    ...ofBackends('admin:backends:write', 'backend.tried'),
    id: 'tryBackend',
    summary: 'Issue a credential that nobody receives, and end it: does the backend work from end to end?',
    description:
      'The credential lasts for one minute, or the shortest time of the kind, and is listed and recorded as any other, as one of the caller. The reply is 200 whether the backend works or not: see `steps`.',
    params: BackendParam,
    body: optionalBody(backends.TryBackend),
    replies: { 200: backends.TriedBackend },
    errors: ['backend_not_found', 'insufficient_scope', 'scope_not_allowed', 'audit_unavailable', 'conflict'],
    links: { ...backendLinks, ...leadsTo('id', 'id', 'revokeAnyCredential') },
  },
  'POST /v1/admin/backends/:name/rotate-root': {
    ...ofBackends('admin:backends:write', 'backend.root_rotated'),
    id: 'rotateRoot',
    summary:
      'Replace the secret that the server logs in to the upstream with, or complete an interrupted replacement',
    params: BackendParam,
    replies: { 200: backends.RootRotation },
    errors: AT_UPSTREAM,
    links: backendLinks,
  },
  'POST /v1/admin/backends/:name/reconcile': {
    ...ofBackends('admin:backends:write', 'backend.reconciled'),
    id: 'reconcileBackend',
    summary:
      'Accounts at the upstream that carry names of Mayfly and that no credential owns; `revoke` ends them',
    params: BackendParam,
    body: optionalBody(backends.Reconcile),
    replies: { 200: backends.Reconciled },
    errors: AT_UPSTREAM,
    links: backendLinks,
  },
  'GET /v1/admin/kinds': {
    ...ofBackends('admin:backends:read'),
    id: 'listKinds',
    summary: 'The kinds of backend, with the schemas of their configuration',
    query: admins.PageQuery,
    replies: { 200: Type.Array(backends.Kind) },
  },
  'GET /v1/admin/tokens': {
    ...ofTokens('admin:tokens:read'),
    id: 'listCredentials',
    summary: 'Credentials of all agents, newest first',
    query: admins.TokenQuery,
    replies: { 200: Type.Array(admins.Token) },
    links: leadsTo('id', '0/id', 'getAnyCredential', 'revokeAnyCredential'),
  },
  'GET /v1/admin/tokens/:id': {
    ...ofTokens('admin:tokens:read'),
    id: 'getAnyCredential',
    summary: 'A credential of any agent',
    params: CredentialId,
    replies: { 200: admins.Token },
    errors: ['credential_not_found'],
    links: leadsTo('id', 'id', 'revokeAnyCredential'),
  },
  'POST /v1/admin/tokens/revoke': {
    ...ofTokens('admin:tokens:write', 'credential.revoked'),
    confirm: true,
    id: 'revokeCredentials',
    summary: 'Revoke all credentials of an agent, of a backend, or of an agent at a backend',
    description:
      'Name at least one of both. A request ends at most 10,000 credentials; `remaining` says how many are left. The agent and the backend stay. The upstream follows, as for each credential alone.',
    body: admins.RevokeAll,
    replies: { 200: admins.RevokedAll },
    errors: ['agent_not_found', 'backend_not_found', 'conflict'],
  },
  'DELETE /v1/admin/tokens/:id': {
    ...ofTokens('admin:tokens:write', 'credential.revoked'),
    id: 'revokeAnyCredential',
    summary: 'Revoke a credential of any agent',
    params: CredentialId,
    replies: { 204: Type.Null() },
    errors: REVOKE,
  },
  'GET /v1/admin/activity': {
    ...ofAudit('admin:audit:read'),
    id: 'readActivity',
    summary: 'How many entries the audit has, by time, backend and action',
    description:
      'Costs the same however many entries there are. An entry is counted some seconds after it was written; one with `details.repeated` counts once.',
    query: activity.ActivityQuery,
    replies: { 200: activity.Activity },
  },
  'GET /v1/admin/audit': {
    ...ofAudit('admin:audit:read'),
    id: 'queryWholeAudit',
    summary: 'The whole audit, newest first',
    query: admins.WholeAuditQuery,
    replies: { 200: Type.Array(AuditEntry) },
  },
  'GET /v1/admin/pending': {
    ...ofEnrollments('admin:enrollments:read'),
    id: 'listPending',
    summary: 'Pending enrollments and requests, oldest first; decided ones by status',
    query: enrollment.PendingQuery,
    replies: { 200: Type.Array(enrollment.PendingEnrollment) },
    links: leadsTo('id', '0/id', 'getPending', 'approveEnrollment', 'rejectEnrollment'),
  },
  'GET /v1/admin/pending/:id': {
    ...ofEnrollments('admin:enrollments:read'),
    id: 'getPending',
    summary: 'One enrollment or request, pending or decided',
    params: enrollment.EnrollmentId,
    replies: { 200: enrollment.PendingEnrollment },
    errors: ['enrollment_not_found'],
    links: leadsTo('id', 'id', 'approveEnrollment', 'rejectEnrollment'),
  },
  'POST /v1/admin/pending/:id/approve': {
    ...ofEnrollments('admin:enrollments:write', 'enrollment.approved'),
    confirm: true,
    id: 'approveEnrollment',
    summary: 'Approve, optionally with other scopes or for a limited time',
    params: enrollment.EnrollmentId,
    body: optionalBody(enrollment.Approve),
    replies: { 200: enrollment.PendingEnrollment },
    errors: ['enrollment_not_found', 'agent_not_found', 'conflict', 'gone'],
    links: leadsTo('name', 'name', 'getAgent'),
  },
  'POST /v1/admin/pending/:id/reject': {
    ...ofEnrollments('admin:enrollments:write', 'enrollment.rejected'),
    id: 'rejectEnrollment',
    summary: 'Reject; the agent that asked is shown the reason',
    params: enrollment.EnrollmentId,
    body: optionalBody(enrollment.Reject),
    replies: { 200: enrollment.PendingEnrollment },
    errors: ['enrollment_not_found', 'conflict', 'gone'],
  },
  'GET /v1/admin/policies': {
    ...ofEnrollments('admin:policies:read'),
    id: 'listPolicies',
    summary: 'The configured policies, in the order in which they decide',
    query: admins.PageQuery,
    replies: { 200: Type.Array(policies.Policy) },
  },
  'GET /v1/admin/policies/explain': {
    ...ofEnrollments('admin:policies:read'),
    id: 'explainPolicy',
    summary: 'How an enrollment with this name and these scopes would be decided, and why',
    query: policies.ExplainQuery,
    replies: { 200: policies.Explanation },
  },
} as const satisfies Record<string, Route>
