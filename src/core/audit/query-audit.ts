import { nameKey } from '../../domain/agent.ts'
import type { AuditEntry } from '../../domain/audit-entry.ts'
import { ID_PREFIX, isId, lowestBodyAt } from '../../domain/ids.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import { invalid, Problem } from '../../domain/problems.ts'
import { coversAny } from '../../domain/scope.ts'
import type { AuditFilter } from '../../store/tables/audit/filter.ts'
import type { Caller } from '../caller.ts'
import type { Core } from '../context.ts'
import { findAgentId, findBackendName } from '../find-named.ts'
import { type Page, type PageQuery, pageOf } from '../page.ts'
import { readAction, readTime } from './audit-filters.ts'

export interface AuditQuestion extends PageQuery {
  readonly backend?: string | undefined
  /** A name or an id `ag_…`, also of an agent that has ended. */
  readonly agent?: string | undefined
  /** Who did it: a name or an id as for `agent`, `operator:` and an e-mail address, `local` or `system`. */
  readonly actor?: string | undefined
  readonly action?: string | undefined
  readonly credential?: string | undefined
  readonly run?: string | undefined
  /** ISO 8601, or a duration before now. */
  readonly since?: string | undefined
  readonly until?: string | undefined
}

const NOTHING: Page<AuditEntry> = { items: [], next: undefined }
const AUDIT_SCOPE = 'admin:audit:read'

/** All entries for the local host and holders of `admin:audit:read`; other agents see their own. Newest first. */
export async function queryAudit(
  core: Pick<Core, 'store'>,
  caller: Caller,
  question: AuditQuestion,
): Promise<Page<AuditEntry>> {
  const seesAll = caller.kind === 'local' || coversAny(caller.scopes, AUDIT_SCOPE)
  // An operator has no entries "of their own": those about an agent are the agent's.
  if (!seesAll && caller.kind === 'operator')
    throw new Problem('insufficient_scope', {
      message: `This requires the scope ${AUDIT_SCOPE}.`,
      scope: AUDIT_SCOPE,
    })
  const ownName = seesAll || caller.kind !== 'agent' ? undefined : caller.agentName
  const filter = await readFilter(core, question, ownName)
  if (filter === undefined) return NOTHING
  if (!seesAll && caller.kind === 'agent') {
    if (filter.agentId !== undefined && filter.agentId !== caller.agentId) return NOTHING
    filter.agentId = caller.agentId
  }
  const limit = question.limit ?? DEFAULT_PAGE
  const page = pageOf(await core.store.audit.query(filter, limit + 1), limit, ({ id }) => id)
  return seesAll ? page : { ...page, items: page.items.map(withoutConfirmation) }
}

/** An administrator's whole request is in it, notes included. */
function withoutConfirmation(entry: AuditEntry): AuditEntry {
  if (entry.details?.['confirmation'] === undefined) return entry
  const { confirmation: _, ...details } = entry.details
  return { ...entry, details }
}

/** The body of an id of the audit, given with its prefix or without. Throws `invalid_request`. */
export function readPlace(text: string, field: string): string {
  const body = text.startsWith(ID_PREFIX.audit) ? text.slice(ID_PREFIX.audit.length) : text
  if (isId('audit', `${ID_PREFIX.audit}${body}`)) return body
  throw invalid(`"${field}" must be a cursor from this listing, or the id of an entry.`)
}

/** Undefined when nothing can match. `ownName`: the name of an agent that sees only its own entries. Throws `invalid_request`. */
export async function readFilter(
  core: Pick<Core, 'store'>,
  question: AuditQuestion,
  ownName?: string | undefined,
): Promise<AuditFilter | undefined> {
  const now = core.store.now()
  const action = readAction(question.action)
  if (question.credential !== undefined && !isId('credential', question.credential))
    throw invalid('"credential" must be a credential id.')
  if (question.run !== undefined && !isId('run', question.run))
    throw invalid('"run" must be the id of a run.')
  const cursor = question.cursor === undefined ? undefined : readPlace(question.cursor, 'cursor')
  const from = question.since === undefined ? undefined : lowestBodyAt(readTime(question.since, 'since', now))
  const until =
    question.until === undefined ? undefined : lowestBodyAt(readTime(question.until, 'until', now) + 1)
  const before = [until, cursor].filter((bound) => bound !== undefined).sort()[0]
  const agentId = question.agent === undefined ? undefined : await findAgentId(core, question.agent)
  if (question.agent !== undefined && agentId === undefined) return undefined
  const actor = question.actor === undefined ? undefined : await findActor(core, question.actor, ownName)
  if (question.actor !== undefined && actor === undefined) return undefined
  return {
    agentId,
    actor,
    backend: await findBackendName(core, question.backend),
    action,
    credentialId: question.credential,
    runId: question.run,
    from,
    before,
  }
}

/** The actor in the form of the entries. An agent that sees only its own entries must not learn the ids of other names. */
async function findActor(
  core: Pick<Core, 'store'>,
  actor: string,
  ownName: string | undefined,
): Promise<string | undefined> {
  const key = nameKey(actor)
  // Of a person of single sign-on: issuer and subject, in which case counts.
  if (/^operator:https?:\/\//.test(key)) return `operator:${actor.slice('operator:'.length)}`
  if (key === 'local' || key === 'system' || key.startsWith('operator:')) return key
  const mayResolve = ownName === undefined || key === nameKey(ownName) || isId('agent', actor)
  return mayResolve ? findAgentId(core, actor) : undefined
}
