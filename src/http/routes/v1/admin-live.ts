import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { createExports, makeExportTicket } from '../../../core/live/export-audit.ts'
import { follow } from '../../../core/live/follow.ts'
import type { AuditEntry } from '../../../domain/audit-entry.ts'
import { csvLine, type ExportFormat } from '../../../domain/audit-export.ts'
import { addRoute, type Http } from '../../routing/route.ts'
import { createEventStream } from '../event-stream.ts'
import { bearerOf, sendEvents } from '../events-reply.ts'
import { presentEntry } from '../present-audit.ts'
import { timestamp } from '../wire.ts'

const MEDIA: Readonly<Record<ExportFormat, string>> = {
  jsonl: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
}
const DOWNLOAD = '/v1/admin/audit/export'

/** The audit as it happens, and as a file. */
export function adminLiveRoutes(http: Http): void {
  const { core } = http
  const startExport = createExports(core)

  addRoute(http, 'GET /v1/admin/events', async ({ actor, query, request, reply }) => {
    const stream = createEventStream()
    const cursor = header(request, 'last-event-id') ?? query.cursor
    const follower = await follow(core, actor, bearerOf(request), { ...query, cursor }, stream)
    stream.body.once('close', follower.leave)
    return sendEvents(reply, stream.body)
  })

  addRoute(http, 'POST /v1/admin/audit/export', async ({ actor, body }) => {
    const { format, ...question } = body
    const made = await makeExportTicket(core, actor, format as ExportFormat, question)
    return {
      url: `${DOWNLOAD}?${new URLSearchParams({ ticket: made.ticket })}`,
      expires_at: timestamp(made.expiresAt),
    }
  })

  addRoute(http, 'GET /v1/admin/audit/export', async ({ actor, query, request, reply }) => {
    const { format, pages, end } = await startExport(actor, bearerOf(request), query.ticket)
    const body = Readable.from(textOf(format, pages), { highWaterMark: 1 })
    body.once('close', end)
    const day = timestamp(core.store.now()).slice(0, 10)
    return reply
      .header('content-type', MEDIA[format])
      .header('content-disposition', `attachment; filename="mayfly-audit-${day}.${format}"`)
      .send(body)
  })
}

async function* textOf(
  format: ExportFormat,
  pages: AsyncIterable<readonly AuditEntry[]>,
): AsyncGenerator<Buffer> {
  if (format === 'csv') yield Buffer.from(csvLine(COLUMNS))
  for await (const page of pages) {
    const lines = page.map((entry) => {
      const shown = presentEntry(entry)
      return format === 'csv' ? csvLine(COLUMNS.map((name) => shown[name])) : `${JSON.stringify(shown)}\n`
    })
    yield Buffer.from(lines.join(''))
  }
}

type Column = keyof ReturnType<typeof presentEntry>

const COLUMNS: readonly Column[] = [
  'id',
  'timestamp',
  'action',
  'outcome',
  'agent_id',
  'agent_name',
  'actor',
  'backend',
  'credential_id',
  'run',
  'scopes',
  'ttl',
  'ip_address',
  'user_agent',
  'auth_method',
  'request_id',
  'metadata',
  'details',
]

function header({ headers }: FastifyRequest, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
