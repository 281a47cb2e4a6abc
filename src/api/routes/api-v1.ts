import { Type } from 'typebox'
import * as a from '../api-v1.ts'
import { name } from '../shared.ts'
import { agent, ISSUE, leadsTo, ownCredential, REVOKE, type Route } from './route.ts'

/** Group A, `/api/v1`. */
export const API_V1 = {
  'POST /api/v1/credentials': {
    ...agent('credential.issued'),
    id: 'issueCredential',
    tags: ['credentials'],
    summary: 'Issue a credential',
    body: a.CredentialRequest,
    replies: { 201: a.IssuedCredential },
    errors: ISSUE,
    links: ownCredential('id'),
  },
  'GET /api/v1/credentials/:id': {
    access: 'reader',
    owner: 'own_or_admin',
    scope: 'admin:tokens:read',
    id: 'getCredential',
    tags: ['credentials'],
    summary: 'One credential, without its secret',
    params: a.CredentialId,
    replies: { 200: a.CredentialInfo },
    errors: ['credential_not_found'],
    links: { ...leadsTo('id', 'id', 'revokeCredential'), ...leadsTo('id', 'backend', 'getBackendInfo') },
  },
  'DELETE /api/v1/credentials/:id': {
    access: 'reader',
    owner: 'own_or_admin',
    scope: 'admin:tokens:write',
    audit: 'credential.revoked',
    id: 'revokeCredential',
    tags: ['credentials'],
    summary: 'Revoke a credential; repeating it gives the same answer',
    params: a.CredentialId,
    replies: { 200: a.RevokedCredential },
    errors: REVOKE,
    links: leadsTo('id', 'id', 'getCredential'),
  },
  'GET /api/v1/backends': {
    access: 'reader',
    owner: 'all',
    id: 'listBackendInfos',
    tags: ['backends'],
    summary: 'All backends; their configuration is never shown here',
    replies: { 200: a.BackendList },
    links: leadsTo('backend', 'backends/0/id', 'issueCredentialOf'),
  },
  'GET /api/v1/backends/:id': {
    access: 'reader',
    owner: 'all',
    id: 'getBackendInfo',
    tags: ['backends'],
    summary: 'One backend',
    params: Type.Object({ id: name('Name of the backend.', 'orders') }),
    replies: { 200: a.BackendInfo },
    errors: ['backend_not_found'],
    links: leadsTo('backend', 'id', 'issueCredentialOf'),
  },
  'GET /api/v1/audit': {
    access: 'reader',
    owner: 'own_or_admin',
    scope: 'admin:audit:read',
    id: 'queryAudit',
    tags: ['audit'],
    summary: 'Audit entries, newest first: the caller’s own, or all with admin:audit:read',
    query: a.AuditQuery,
    replies: { 200: a.AuditPage },
    links: leadsTo('cursor', 'next_cursor', 'queryAudit'),
  },
} as const satisfies Record<string, Route>
