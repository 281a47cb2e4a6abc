import type { Static } from 'typebox'
import type * as activity from '../api/activity.ts'
import type * as admin from '../api/admin.ts'
import type * as backends from '../api/admin-backends.ts'
import type * as a from '../api/api-v1.ts'
import type * as enrollment from '../api/enrollment.ts'
import type * as health from '../api/health.ts'
import type * as live from '../api/live.ts'
import type * as people from '../api/operators.ts'
import type * as policies from '../api/policies.ts'
import type * as runRequests from '../api/run-requests.ts'
import type * as runs from '../api/runs.ts'
import type * as uses from '../api/uses.ts'
import type * as v1 from '../api/v1.ts'
import type * as wellKnown from '../api/well-known.ts'

/** What a caller gives: a field that may be left out may be `undefined`, too, because JSON has no such value. */
export type Sent<T> = {
  readonly [K in keyof T]: Record<never, never> extends Pick<T, K> ? T[K] | undefined : T[K]
}

// The types on the wire, from the schemas of the server.
export type IssueRequest = Sent<Static<typeof a.CredentialRequest>>
export type IssuedCredential = Static<typeof a.IssuedCredential>
export type CredentialInfo = Static<typeof a.CredentialInfo>
export type RevokedCredential = Static<typeof a.RevokedCredential>
export type BackendInfo = Static<typeof a.BackendInfo>
export type AuditEntry = Static<typeof a.AuditEntry>
export type AgentStatus = Static<typeof v1.AgentStatus>
export type ActiveCredential = Static<typeof v1.ActiveCredential>
export type SigningKey = Static<typeof v1.SigningKey>
export type SignRequest = Sent<Static<typeof v1.SignBody>>
export type Signed = Static<typeof v1.Signature>
export type ScopeRequest = Sent<Static<typeof enrollment.RequestScopes>>
export type RequestedScopes = Static<typeof enrollment.RequestedScopes>
export type EnrollRequest = Sent<Static<typeof enrollment.Enroll>>
export type Enrolled = Static<typeof enrollment.Enrolled>
export type EnrollmentPoll = Static<typeof enrollment.EnrollmentPoll>
export type PendingEnrollment = Static<typeof enrollment.PendingEnrollment>
export type EnrollmentStatus = Static<typeof enrollment.EnrollmentStatus>
export type Approval = Sent<Static<typeof enrollment.Approve>>
export type Rejection = Sent<Static<typeof enrollment.Reject>>
export type Explanation = Static<typeof policies.Explanation>
export type Policy = Static<typeof policies.Policy>
export type Health = Static<typeof health.Health>
export type Discovery = Static<typeof wellKnown.DiscoveryReply>
export type Agent = Static<typeof admin.Agent>
export type CreateAgent = Sent<Static<typeof admin.CreateAgent>>
export type CreatedAgent = Static<typeof admin.CreatedAgent>
export type ChangeAgent = Sent<Static<typeof admin.ChangeAgent>>
export type ChangedAgent = Static<typeof admin.ChangedAgent>
export type RotatedAgent = Static<typeof admin.RotatedAgent>
export type Backend = Static<typeof backends.Backend>
export type BackendHealth = Static<typeof backends.BackendHealth>
export type HealthReason = NonNullable<BackendHealth['last_failure_reason']>
export type CheckedBackend = Static<typeof backends.CheckedBackend>
export type TryBackend = Sent<Static<typeof backends.TryBackend>>
export type TriedBackend = Static<typeof backends.TriedBackend>
export type BackendDeletion = Static<typeof backends.BackendDeletion>
export type TestedReceiver = Static<typeof admin.TestedReceiver>
export type RootRotation = Static<typeof backends.RootRotation>
export type Reconcile = Sent<Static<typeof backends.Reconcile>>
export type Reconciled = Static<typeof backends.Reconciled>
export type CreateBackend = Sent<Static<typeof backends.CreateBackend>>
export type ChangeBackend = Sent<Static<typeof backends.ChangeBackend>>
export type Kind = Static<typeof backends.Kind>
export type Token = Static<typeof admin.Token>
export type RevokeAll = Sent<Static<typeof admin.RevokeAll>>
export type RevokedAll = Static<typeof admin.RevokedAll>
export type Activity = Static<typeof activity.Activity>
export type Overview = Static<typeof activity.Overview>
export type AgentKey = Static<typeof admin.AgentKey>
export type IssuerKey = Static<typeof admin.IssuerKey>
export type Setting = Static<typeof admin.Settings>['settings'][number]
export type Plugin = Static<typeof admin.Plugin>
export type AuditExport = Sent<Static<typeof live.ExportAudit>>
export type ExportAddress = Static<typeof live.ExportAddress>
export type Operator = Static<typeof people.Operator>
export type InviteOperator = Sent<Static<typeof people.InviteOperator>>
export type InvitedOperator = Static<typeof people.InvitedOperator>
export type ChangeOperator = Sent<Static<typeof people.ChangeOperator>>
export type StartRun = Sent<Static<typeof runs.StartRun>>
export type Run = Static<typeof runs.Run>
export type RunState = Static<typeof runRequests.RunState>
export type RunAlive = Static<typeof runRequests.RunAlive>
export type RequestBatch = Sent<Static<typeof runRequests.RequestBatch>>
export type RequestLine = Static<typeof runRequests.RequestLine>
export type RecordedRequest = Static<typeof runRequests.RecordedRequest>
export type Use = Static<typeof uses.Use>
export type HttpUse = Static<typeof uses.HttpUse>
export type DatabaseUse = Static<typeof uses.DatabaseUse>
export type Place = Static<typeof uses.Place>
export type UseRules = Static<typeof uses.UseRules>
export type AddPlugin = Sent<Static<typeof admin.AddPlugin>>

/** The query of a listing, without its page. */
type Filter<Query> = Sent<Omit<Query, 'limit' | 'cursor'>>

export type AuditFilter = Filter<Static<typeof a.AuditQuery>>
export type ActivityFilter = Sent<Static<typeof activity.ActivityQuery>>
export type EventFilter = Filter<Static<typeof live.EventsQuery>>
export type CredentialFilter = Filter<Static<typeof admin.TokenQuery>>
export type EndOfRun = Filter<Static<typeof runs.EndQuery>>
export type RunFilter = Filter<Static<typeof runs.RunQuery>>
export type AnyRunFilter = Filter<Static<typeof runs.AnyRunQuery>>
export type RequestFilter = Filter<Static<typeof runRequests.RequestQuery>>
export type PendingFilter = Filter<Static<typeof enrollment.PendingQuery>>

/** The client reads a listing page by page. `limit`: items a page, 1 to 1000. */
export interface PageOptions {
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
}
