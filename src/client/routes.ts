import type { Authorizer } from './authorize.ts'
import { type Call, pathPart } from './send.ts'
import type * as wire from './wire.ts'

/** What each route that a method calls takes and answers. */
interface Routes {
  'POST /api/v1/credentials': [body: wire.IssueRequest, answer: wire.IssuedCredential]
  'GET /api/v1/credentials/:id': [body: undefined, answer: wire.CredentialInfo]
  'DELETE /api/v1/credentials/:id': [body: undefined, answer: wire.RevokedCredential]
  'GET /api/v1/backends': [body: undefined, answer: { backends: wire.BackendInfo[] }]
  'GET /api/v1/backends/:id': [body: undefined, answer: wire.BackendInfo]
  'GET /v1/status': [body: undefined, answer: wire.AgentStatus]
  'GET /v1/signing-key': [body: undefined, answer: wire.SigningKey]
  'POST /v1/sign': [body: wire.SignRequest, answer: wire.Signed]
  'POST /v1/request': [body: wire.ScopeRequest, answer: wire.RequestedScopes]
  'GET /v1/request/:id': [body: undefined, answer: wire.RequestedScopes]
  'DELETE /v1/self': [body: undefined, answer: undefined]
  'POST /v1/enroll': [body: wire.EnrollRequest, answer: wire.Enrolled]
  'GET /v1/enroll/:id/status': [body: undefined, answer: wire.EnrollmentPoll]
  'GET /.well-known/openid-configuration': [body: undefined, answer: wire.Discovery]
  'GET /health': [body: undefined, answer: wire.Health]
  'GET /readyz': [body: undefined, answer: wire.Health]
  'POST /v1/admin/agents': [body: wire.CreateAgent, answer: wire.CreatedAgent]
  'GET /v1/admin/agents/:id': [body: undefined, answer: wire.Agent]
  'PATCH /v1/admin/agents/:id': [body: wire.ChangeAgent, answer: wire.ChangedAgent]
  'POST /v1/admin/agents/:id/rotate': [body: { grace?: string }, answer: wire.RotatedAgent]
  'DELETE /v1/admin/agents/:id': [body: undefined, answer: undefined]
  'POST /v1/admin/backends': [body: wire.CreateBackend, answer: wire.Backend]
  'GET /v1/admin/backends/:id': [body: undefined, answer: wire.Backend]
  'PUT /v1/admin/backends/:id': [body: wire.ChangeBackend, answer: wire.Backend]
  'DELETE /v1/admin/backends/:id': [body: undefined, answer: wire.BackendDeletion | undefined]
  'POST /v1/admin/backends/:id/rotate-root': [body: undefined, answer: wire.RootRotation]
  'POST /v1/admin/backends/:id/reconcile': [body: wire.Reconcile, answer: wire.Reconciled]
  'DELETE /v1/admin/tokens/:id': [body: undefined, answer: undefined]
  'POST /v1/admin/pending/:id/approve': [body: wire.Approval, answer: wire.PendingEnrollment]
  'POST /v1/admin/pending/:id/reject': [body: wire.Rejection, answer: wire.PendingEnrollment]
  'GET /v1/admin/policies/explain': [body: undefined, answer: wire.Explanation]
  'POST /v1/admin/plugins': [body: wire.AddPlugin, answer: wire.Plugin]
  'DELETE /v1/admin/plugins/:id': [body: undefined, answer: undefined]
  'POST /v1/admin/plugins/reload': [body: undefined, answer: { loaded: number; plugins: wire.Plugin[] }]
  'POST /v1/admin/plugins/:id/reload': [body: undefined, answer: { reloaded: string; version: string }]
  'POST /v1/admin/keys/rotate': [
    body: { grace?: string },
    answer: { key_id: string; previous_valid_until: string | null },
  ]
}

export type Route = keyof Routes
export type Answer<R extends Route> = Routes[R][1]

type Input<R extends Route> = Pick<Call, 'query' | 'headers' | 'retry' | 'signal'> &
  (R extends `${string}/:id${string}` ? { readonly id: string } : { readonly id?: never }) &
  (Routes[R][0] extends undefined ? { readonly body?: never } : { readonly body: Routes[R][0] })

/** Calls one route, typed by it. */
export type Request = <R extends Route>(route: R, input: Input<R>) => Promise<Answer<R>>

export function requestThrough({ call }: Pick<Authorizer, 'call'>): Request {
  return async <R extends Route>(route: R, { id, ...input }: Input<R>) => {
    const [method, path = ''] = route.split(' ')
    const filled = id === undefined ? path : path.replace(':id', () => pathPart(id))
    return (await call<Answer<R>>({ method: method as Call['method'], path: filled, ...input })).body
  }
}
