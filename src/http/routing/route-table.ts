import type { Action } from '../../domain/actions.ts'

/**
 * Who may call each route. A route without an entry stops the boot, and so does an entry without a route.
 * - `public`: no authentication; credentials in the request are ignored.
 * - `agent`: an agent's token with any scope; core refuses a narrowed token actions that outlive it (`requireWhole`).
 * - `reader`: an agent's token, or the local host.
 * - `admin`: the named scope, or the local host (decisions.md §2.3).
 */
export interface RouteRule {
  readonly access: 'public' | 'agent' | 'reader' | 'admin'
  readonly scope?: string
  /** Whose resources the route reaches. */
  readonly owner?: 'own' | 'own_or_admin' | 'all'
  /** A scope that a public route needs with `?verbose`, or the local host. */
  readonly verbose?: string
  /** Limits in addition to those of every request. */
  readonly limits?: string
  readonly audit?: Action
}

const open = (limits?: string, audit?: Action) =>
  ({ access: 'public', ...(limits && { limits }), ...(audit && { audit }) }) as const
const agent = (audit?: Action) => ({ access: 'agent', owner: 'own', ...(audit && { audit }) }) as const
const admin = (scope: string, audit?: Action) =>
  ({ access: 'admin', scope, owner: 'all', ...(audit && { audit }) }) as const

export const ROUTES = {
  'GET /': open(),
  'GET /health': open(),
  'GET /readyz': { access: 'public', verbose: 'admin:metrics:read' },
  'GET /metrics': { access: 'admin', scope: 'admin:metrics:read', owner: 'all' },
  'GET /openapi.json': open('documents a minute per address'),
  'GET /docs': open('documents a minute per address'),
  'GET /docs/scalar.js': open('documents a minute per address'),
  'GET /.well-known/openid-configuration': open(),
  'GET /.well-known/oauth-authorization-server': open(),
  'GET /.well-known/jwks.json': open(),
  'GET /backends/:backend/.well-known/openid-configuration': open(),
  'GET /backends/:backend/.well-known/jwks.json': open(),
  'GET /backends/:backend/revoked': open(),
  'GET /backends/:backend/token': open(
    'failures a minute per credential and address; tokens a minute per agent',
    'token.issued',
  ),

  'POST /oauth/token': open('failures a minute per client and address', 'token.issued'),
  'POST /oauth/introspect': open('failures a minute per client and address'),
  'POST /oauth/revoke': open('failures a minute per client and address', 'token.revoked'),

  'POST /api/v1/credentials': agent('credential.issued'),
  'GET /api/v1/credentials/:id': { access: 'reader', owner: 'own_or_admin', scope: 'admin:tokens:read' },
  'DELETE /api/v1/credentials/:id': {
    access: 'reader',
    owner: 'own_or_admin',
    scope: 'admin:tokens:write',
    audit: 'credential.revoked',
  },
  'GET /api/v1/backends': { access: 'reader', owner: 'all' },
  'GET /api/v1/backends/:id': { access: 'reader', owner: 'all' },
  'GET /api/v1/audit': { access: 'reader', owner: 'own_or_admin', scope: 'admin:audit:read' },

  'GET /v1/status': agent(),
  'POST /v1/credentials/:backend': agent('credential.issued'),
  'GET /v1/credentials/:backend': agent('credential.issued'),
  'GET /v1/active': agent(),
  'DELETE /v1/active/:id': agent('credential.revoked'),
  'GET /v1/signing-key': agent('signing_key.read'),
  'POST /v1/sign': agent('signing_key.used'),
  'DELETE /v1/self': agent('agent.deleted'),
  'POST /v1/request': agent('enrollment.requested'),
  'GET /v1/request/:id': agent(),
  'POST /v1/enroll': open('enrollments a minute per address; pending in all', 'enrollment.requested'),
  'GET /v1/enroll/:id/status': open('polls a minute per enrollment', 'enrollment.collected'),

  'GET /v1/admin/agents': admin('admin:agents:read'),
  'POST /v1/admin/agents': admin('admin:agents:write', 'agent.created'),
  'GET /v1/admin/agents/:name': admin('admin:agents:read'),
  'PATCH /v1/admin/agents/:name': admin('admin:agents:write', 'agent.changed'),
  'POST /v1/admin/agents/:name/rotate': admin('admin:agents:write', 'agent.rotated'),
  'DELETE /v1/admin/agents/:name': admin('admin:agents:write', 'agent.deleted'),
  'GET /v1/admin/backends': admin('admin:backends:read'),
  'POST /v1/admin/backends': admin('admin:backends:write', 'backend.created'),
  'GET /v1/admin/backends/:name': admin('admin:backends:read'),
  'PUT /v1/admin/backends/:name': admin('admin:backends:write', 'backend.changed'),
  'DELETE /v1/admin/backends/:name': admin('admin:backends:write', 'backend.deleted'),
  'POST /v1/admin/backends/:name/rotate-root': admin('admin:backends:write', 'backend.root_rotated'),
  'POST /v1/admin/backends/:name/reconcile': admin('admin:backends:write', 'backend.reconciled'),
  'GET /v1/admin/kinds': admin('admin:backends:read'),
  'GET /v1/admin/tokens': admin('admin:tokens:read'),
  'DELETE /v1/admin/tokens/:id': admin('admin:tokens:write', 'credential.revoked'),
  'GET /v1/admin/audit': admin('admin:audit:read'),
  'GET /v1/admin/pending': admin('admin:enrollments:read'),
  'POST /v1/admin/pending/:id/approve': admin('admin:enrollments:write', 'enrollment.approved'),
  'POST /v1/admin/pending/:id/reject': admin('admin:enrollments:write', 'enrollment.rejected'),
  'GET /v1/admin/policies': admin('admin:policies:read'),
  'GET /v1/admin/policies/explain': admin('admin:policies:read'),
  'GET /v1/admin/plugins': admin('admin:plugins:write'),
  'POST /v1/admin/plugins': admin('admin:plugins:write', 'plugin.added'),
  'DELETE /v1/admin/plugins/:name': admin('admin:plugins:write', 'plugin.removed'),
  'POST /v1/admin/plugins/reload': admin('admin:plugins:write', 'plugin.reloaded'),
  'POST /v1/admin/plugins/:name/reload': admin('admin:plugins:write', 'plugin.reloaded'),
  'GET /v1/admin/keys': admin('admin:keys:read'),
  'POST /v1/admin/keys/rotate': admin('admin:keys:write', 'keys.rotated'),
} as const satisfies Record<string, RouteRule>

export type RouteName = keyof typeof ROUTES
