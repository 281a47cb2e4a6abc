import type { TObject, TSchema } from 'typebox'
import type { Action } from '../../domain/actions.ts'
import type { ProblemCode } from '../../domain/problems.ts'

/**
 * Who may call a route.
 * - `public`: no authentication; credentials in the request are ignored.
 * - `agent`: an agent's token with any scope; core refuses a narrowed token actions that outlive it (`requireWhole`).
 * - `reader`: an agent's token, an operator's session or command, or the local host.
 * - `admin`: the named scope, held by an agent or an operator, or the local host (decisions.md §2.3).
 * - `session`: an operator's session with a browser, and nothing else.
 */
export interface RouteRule {
  readonly access: 'public' | 'agent' | 'reader' | 'admin' | 'session'
  readonly scope?: string
  /** Whose resources the route reaches. */
  readonly owner?: 'own' | 'own_or_admin' | 'all'
  /** A scope that a public route needs with `?verbose`, or the local host. */
  readonly verbose?: string
  /** Limits in addition to those of every request. */
  readonly limits?: string
  readonly audit?: Action
  /**
   * The token of a run may call it though it acts: what it does ends with the run, or is the run's own. Routes that record
   * nothing change nothing.
   */
  readonly ofRun?: true
  /** Core may ask an operator to confirm the request with a passkey (`core/confirm.ts`). */
  readonly confirm?: true
  /**
   * A page of this server may navigate there: the cookie of the session is enough, without the key of the page. Core checks
   * that the address was made for this session.
   */
  readonly byCookie?: true
}

/** All that the server, the OpenAPI document and the client know of a route. */
export interface Route extends RouteRule {
  /** The `operationId`: what generated clients call it. */
  readonly id: string
  readonly tags: readonly string[]
  /** One line for the OpenAPI document. */
  readonly summary: string
  readonly description?: string
  readonly params?: TObject
  readonly query?: TObject
  readonly headers?: TObject
  readonly body?: TSchema
  /** By status. The schema is the allow-list: fields that it does not name are not sent. */
  readonly replies: Readonly<Record<number, TSchema>>
  readonly consumes?: readonly string[]
  /** Media types of replies that are not JSON. */
  readonly produces?: readonly string[]
  /** Every address below it is the same resource, unless it has a row of its own. */
  readonly below?: true
  /** `Cache-Control` of successful replies; `no-store` if absent. */
  readonly cacheControl?: string
  /** Errors beside those that every such route has (`openapi-errors.ts`). */
  readonly errors?: readonly ProblemCode[]
  /** What a value of the reply is good for: operation → its parameter and a runtime expression. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export const open = (limits?: string, audit?: Action) =>
  ({ access: 'public', ...(limits && { limits }), ...(audit && { audit }) }) as const
export const agent = (audit?: Action) => ({ access: 'agent', owner: 'own', ...(audit && { audit }) }) as const
/** The routes of one subject of the document. */
export const admin = (subject: string) => (scope: string, audit?: Action) =>
  ({ access: 'admin', scope, owner: 'all', ...(audit && { audit }), tags: [subject] }) as const

/** Links: the value at this place of the reply is this parameter of these operations. */
export const leadsTo = (parameter: string, place: string, ...operations: string[]) =>
  Object.fromEntries(operations.map((id) => [id, { [parameter]: `$response.body#/${place}` }]))
/** What an agent may do with a credential of its own. */
export const ownCredential = (place: string) =>
  leadsTo('id', place, 'getCredential', 'revokeCredential', 'revokeActiveCredential')

export const UPSTREAM = ['backend_error', 'backend_unavailable', 'backend_timeout'] as const
export const ISSUE = [
  'ttl_exceeded',
  'scope_not_allowed',
  'insufficient_scope',
  'backend_not_found',
  'not_found',
  'gone',
  'conflict',
  'audit_unavailable',
  ...UPSTREAM,
] as const
export const REVOKE = ['credential_not_found', 'conflict'] as const
