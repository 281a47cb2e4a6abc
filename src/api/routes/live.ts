import { Type } from 'typebox'
import * as live from '../live.ts'
import { admin, type Route } from './route.ts'

const ofAudit = admin('audit')

/** The audit as it happens, and as a file. */
export const LIVE = {
  'GET /v1/admin/events': {
    access: 'reader',
    owner: 'own_or_admin',
    scope: 'admin:audit:read',
    limits: '8 streams of one caller, 1,000 of one node',
    id: 'followEvents',
    tags: ['audit'],
    summary: 'What happens from now on, as server-sent events',
    description:
      'Each event is an entry of the audit: `event` is its action, `data` the entry as `GET /v1/admin/audit` shows it, and `id` the place from which the stream goes on with `Last-Event-ID`. Entries may come twice, around a new connection and where nodes commit at the same time, and then have the same `id` in `data`. A caller without `admin:audit:read` gets the entries about agents, backends, enrollments, credentials and people that its other `admin:…:read` scopes show, without who did it and from where. `event: reset` says that entries were left out, because there were too many: load again what you show. The stream ends with the session, the token or the scope.',
    query: live.EventsQuery,
    headers: live.EventsHeaders,
    replies: { 200: Type.String() },
    produces: ['text/event-stream'],
    errors: ['insufficient_scope'],
  },
  'POST /v1/admin/audit/export': {
    ...ofAudit('admin:audit:read'),
    id: 'exportAudit',
    summary: 'An address from which the audit can be downloaded once, within a minute',
    description:
      'The address is worth nothing to anybody else: the download needs the same bearer, or the cookie of the same session from a page of this server. It is of any size, newest first, and ends early with the session, the token or the scope.',
    body: live.ExportAudit,
    replies: { 200: live.ExportAddress },
  },
  'GET /v1/admin/audit/export': {
    ...ofAudit('admin:audit:read', 'audit.exported'),
    ofRun: true,
    byCookie: true,
    limits: '2 downloads of one caller, 8 of one node',
    id: 'downloadAudit',
    summary: 'The download of an export',
    query: live.ExportQuery,
    replies: { 200: Type.String() },
    produces: ['application/x-ndjson', 'text/csv'],
    errors: ['gone', 'not_found', 'audit_unavailable'],
  },
} as const satisfies Record<string, Route>
