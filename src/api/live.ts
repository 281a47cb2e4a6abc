import { Type } from 'typebox'
import { EXPORT_FORMATS } from '../domain/audit-export.ts'
import { auditFilters } from './api-v1.ts'
import * as Field from './shared.ts'

/** The audit as it happens, and as a file. */
const { since: _since, until: _until, ...liveFilters } = auditFilters

const AUDIT_ID = '^(aud_)?[0-7][0-9a-hjkmnp-tv-z]{25}$'
const place = (description: string) =>
  Field.text(description, Field.EXAMPLE_ID.audit, { maxLength: 64 }, Field.accepts({ pattern: AUDIT_ID }))

export const EventsQuery = Field.closed({
  ...liveFilters,
  cursor: Type.Optional(
    place('Only what comes after this place: an `id` of this stream. `Last-Event-ID` counts more.'),
  ),
})

export const EventsHeaders = Type.Object({
  'last-event-id': Type.Optional(place('The last `id` that arrived: the stream goes on after it.')),
})

export const ExportAudit = Field.sent('AuditExport', {
  format: Field.oneOf([...EXPORT_FORMATS], 'One JSON object a line, or CSV with a head line.'),
  ...auditFilters,
})

export const ExportAddress = Field.shown('AuditExportAddress', {
  url: Field.text(
    'Where the file is, on this server: for one download, by the caller that made it.',
    '/v1/admin/audit/export?ticket=1.c2VhbGVk',
  ),
  expires_at: Field.timestamp('Until when the download must begin.'),
})

export const ExportQuery = Field.closed({
  ticket: Field.text('Of the address.', '1.c2VhbGVk', { minLength: 1, maxLength: 6_000 }),
})
