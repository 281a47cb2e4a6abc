import { Type } from 'typebox'
import type { Action } from '../../domain/actions.ts'
import { PageQuery } from '../admin.ts'
import { CredentialId } from '../api-v1.ts'
import * as enrollment from '../enrollment.ts'
import { optionalBody } from '../shared.ts'
import * as v1 from '../v1.ts'
import { agent, ISSUE, leadsTo, open, ownCredential, REVOKE, type Route } from './route.ts'

/** What an agent does with what is its own. */
const self = (audit?: Action) => ({ ...agent(audit), tags: ['agent'] }) as const
const USE_KEY = ['not_allowed', 'insufficient_scope', 'conflict', 'audit_unavailable'] as const
const enrollmentLinks = (own: string) => leadsTo('id', 'id', own, 'approveEnrollment', 'rejectEnrollment')

/** Group B, `/v1`, as an agent and one that wants to become one see it. */
export const V1 = {
  'GET /v1/status': {
    ...self(),
    id: 'getStatus',
    summary: 'Who am I, and what do I hold',
    replies: { 200: v1.AgentStatus },
    links: ownCredential('active_credentials/0/id'),
  },
  'POST /v1/credentials/:backend': {
    ...agent('credential.issued'),
    ofRun: true,
    id: 'issueCredentialOf',
    tags: ['credentials'],
    summary: 'Issue a credential of this backend',
    description: 'The options are in the body or in the query, never in both.',
    params: v1.BackendName,
    query: v1.IssueQuery,
    body: optionalBody(v1.IssueBody),
    replies: { 200: v1.BackendCredential },
    errors: ISSUE,
    links: ownCredential('id'),
  },
  'GET /v1/credentials/:backend': {
    ...agent('credential.issued'),
    ofRun: true,
    id: 'issueCredentialByGet',
    tags: ['credentials'],
    summary: 'Issue a credential of this backend',
    params: v1.BackendName,
    query: v1.IssueQuery,
    replies: { 200: v1.BackendCredential },
    errors: [...ISSUE, 'method_not_allowed'],
    links: ownCredential('id'),
  },
  'GET /v1/active': {
    ...self(),
    id: 'listActiveCredentials',
    summary: 'My active credentials, oldest first',
    query: PageQuery,
    replies: { 200: Type.Array(v1.ActiveCredential) },
    links: ownCredential('0/id'),
  },
  'DELETE /v1/active/:id': {
    ...self('credential.revoked'),
    ofRun: true,
    id: 'revokeActiveCredential',
    summary: 'Revoke one of my credentials',
    params: CredentialId,
    replies: { 204: Type.Null() },
    errors: REVOKE,
  },
  'GET /v1/signing-key': {
    ...self('signing_key.read'),
    ofRun: true,
    id: 'getSigningKey',
    summary: 'My key for signing commits',
    description: 'The private half requires a token with all scopes of its agent.',
    query: v1.SigningKeyQuery,
    replies: { 200: v1.SigningKey },
    errors: USE_KEY,
  },
  'POST /v1/sign': {
    ...self('signing_key.used'),
    ofRun: true,
    id: 'signObject',
    summary: 'Sign a commit or tag with my key, which stays on the server',
    description:
      'A detached OpenPGP signature in the form that `git` expects from `gpg.program`. Refuses data that is no git object, and objects with a foreign author or committer (see `signing_identity`).',
    body: v1.SignBody,
    replies: { 200: v1.Signature },
    errors: USE_KEY,
  },
  'DELETE /v1/self': {
    ...self('agent.deleted'),
    id: 'deleteSelf',
    summary: 'Delete myself, and revoke all my credentials',
    description: 'Requires a token with all scopes of its agent.',
    replies: { 204: Type.Null() },
    errors: ['insufficient_scope'],
  },
  'DELETE /v1/login': {
    ...self('token.revoked'),
    ofRun: true,
    id: 'deleteLogin',
    summary: 'End my keyless login, and me with it when no other login of mine lives',
    description:
      'For the access token of an agent without secrets (`/oauth/token` by token exchange or JWT bearer): ends the token, its run with all credentials of that, and the agent with all that it has when this was its last login.',
    replies: { 204: Type.Null() },
    errors: ['not_allowed', 'conflict'],
  },
  'POST /v1/request': {
    ...self('enrollment.requested'),
    id: 'requestScopes',
    summary: 'Request more scopes; an administrator decides',
    body: enrollment.RequestScopes,
    replies: { 200: enrollment.RequestedScopes },
    errors: ['insufficient_scope', 'conflict', 'rate_limited'],
    links: enrollmentLinks('getRequest'),
  },
  'GET /v1/request/:id': {
    ...self(),
    id: 'getRequest',
    summary: 'One of my requests for more scopes, and what was decided',
    params: enrollment.EnrollmentId,
    replies: { 200: enrollment.RequestedScopes },
    errors: ['enrollment_not_found'],
  },
  'POST /v1/enroll': {
    ...open('enrollments a minute per address; pending in all', 'enrollment.requested'),
    id: 'enroll',
    tags: ['enrollment'],
    summary: 'Ask to become an agent, with a public key that you have made',
    description: 'Asking again with the same key and name returns the existing enrollment.',
    body: enrollment.Enroll,
    replies: { 200: enrollment.Enrolled },
    errors: ['conflict', 'rate_limited'],
    links: enrollmentLinks('pollEnrollment'),
  },
  'GET /v1/enroll/:id/status': {
    ...open('polls a minute per enrollment', 'enrollment.collected'),
    id: 'pollEnrollment',
    tags: ['enrollment'],
    summary: 'The status of my enrollment and, once approved, my encrypted credentials',
    description: 'Requires the header Enrollment-Proof. The answer can be fetched for 10 minutes.',
    params: enrollment.EnrollmentId,
    headers: enrollment.ProofHeader,
    replies: { 200: enrollment.EnrollmentPoll },
    errors: ['unauthorized', 'enrollment_not_found', 'gone', 'conflict', 'rate_limited', 'audit_unavailable'],
  },
} as const satisfies Record<string, Route>
