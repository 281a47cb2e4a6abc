import type { AuditEntry } from '../../domain/audit-entry.ts'
import type { ExportFormat } from '../../domain/audit-export.ts'
import { EXPORT_TICKET_MS, MAX_EXPORTS, MAX_EXPORTS_PER_CALLER } from '../../domain/limits.ts'
import { Problem } from '../../domain/problems.ts'
import type { AuditFilter } from '../../store/tables/audit/filter.ts'
import { audit } from '../audit/entry.ts'
import { type AuditQuestion, readFilter } from '../audit/query-audit.ts'
import type { Actor, Caller } from '../caller.ts'
import { commit } from '../commit.ts'
import type { Core } from '../context.ts'
import { currentCallers } from './current-callers.ts'
import { createPlaces, keyOf } from './places.ts'
import { reachOf } from './reach.ts'

export type ExportQuestion = Omit<AuditQuestion, 'cursor' | 'limit'>

/** What the ticket of an address holds, sealed. */
interface Ticket {
  /** Of the ticket: it is used once, on whatever node. */
  readonly id: string
  readonly maker: string
  readonly format: ExportFormat
  /** As it was asked; null: nothing can match. */
  readonly filter: AuditFilter | null
  readonly asked: ExportQuestion
  readonly expiresAt: number
}

export interface AuditExport {
  readonly format: ExportFormat
  /** Newest first, a page at a time; the next one is read when it is asked for. Throws when the caller ends. */
  readonly pages: AsyncIterable<readonly AuditEntry[]>
  /** Gives its place back; harmless when repeated. */
  end(): void
}

/** Small enough that no page holds up other work, whatever its entries hold. */
const PAGE = 250
const CHECK_MS = 500

/** Throws `invalid_request`. */
export async function makeExportTicket(
  core: Pick<Core, 'store' | 'ids' | 'sealer'>,
  { caller }: Actor,
  format: ExportFormat,
  asked: ExportQuestion,
): Promise<{ ticket: string; expiresAt: number }> {
  // Durations back from now are counted from here.
  const filter = (await readFilter(core, asked)) ?? null
  const expiresAt = core.store.now() + EXPORT_TICKET_MS
  const ticket: Ticket = { id: core.ids.body(), maker: keyOf(caller), format, filter, asked, expiresAt }
  return { ticket: core.sealer.seal('used_proofs', '', 'ticket', JSON.stringify(ticket)), expiresAt }
}

export type StartExport = (actor: Actor, bearer: string | undefined, ticket: string) => Promise<AuditExport>

/** The downloads of this node. */
export function createExports(core: Pick<Core, 'store' | 'ids' | 'sealer' | 'callers'>): StartExport {
  const places = createPlaces(MAX_EXPORTS_PER_CALLER, MAX_EXPORTS, 'downloads')
  /**
   * Uses the ticket up, records it, and starts. Throws `not_found` for one that is not the caller's, `gone` for one that was used or is
   * too old, `rate_limited` and `audit_unavailable`.
   */
  return async (actor, bearer, text) => {
    const ticket = openTicket(core, text)
    if (ticket === undefined || ticket.maker !== keyOf(actor.caller)) throw new Problem('not_found')
    if (ticket.expiresAt <= core.store.now()) throw gone()
    const end = places.take(actor.caller)
    try {
      await spendTicket(core, actor, ticket)
    } catch (error) {
      end()
      throw error
    }
    return { format: ticket.format, pages: pagesOf(core, { caller: actor.caller, bearer }, ticket), end }
  }
}

function openTicket({ sealer }: Pick<Core, 'sealer'>, text: string): Ticket | undefined {
  try {
    return JSON.parse(sealer.open('used_proofs', '', 'ticket', text)) as Ticket
  } catch {
    return undefined
  }
}

async function spendTicket(
  core: Pick<Core, 'store' | 'ids'>,
  actor: Actor,
  { id, format, asked, expiresAt }: Ticket,
): Promise<void> {
  const use = core.store.tokens.useProof(`export|${id}`, expiresAt)
  const entry = audit(core, actor, {
    action: 'audit.exported',
    agent: null,
    details: { format, ...asked },
  })
  const outcome = await commit(core, actor, [use, entry], { code: 'audit_unavailable' })
  if (!outcome.done) throw gone()
}

const gone = () =>
  new Problem('gone', { message: 'This address was used, or is older than a minute; ask for another one.' })

async function* pagesOf(
  core: Pick<Core, 'store' | 'callers'>,
  watched: { readonly caller: Caller; readonly bearer: string | undefined },
  { filter }: Ticket,
): AsyncGenerator<readonly AuditEntry[]> {
  if (filter === null) return
  let before = filter.before
  let checkedAt = performance.now()
  for (;;) {
    const page = await core.store.audit.query({ ...filter, before }, PAGE)
    if (performance.now() - checkedAt > CHECK_MS) {
      const [caller] = await currentCallers(core, [watched])
      if (caller === undefined || reachOf(caller)?.isWhole !== true)
        throw new Error('the caller of an export has ended')
      checkedAt = performance.now()
    }
    if (page.length > 0) yield page
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return
    before = last.id
  }
}
