import type { Credential, Status } from '../../domain/credential.ts'
import { isId } from '../../domain/ids.ts'
import { DEFAULT_PAGE } from '../../domain/limits.ts'
import { invalid } from '../../domain/problems.ts'
import type { Core } from '../context.ts'
import { findAgentId, findBackendName } from '../find-named.ts'
import type { Page, PageQuery } from '../page.ts'
import { type CredentialView, viewOf } from './read-credential.ts'

export interface CredentialFilter extends PageQuery {
  readonly backend?: string | undefined
  /** Name or id. */
  readonly agent?: string | undefined
  readonly status?: Status | undefined
  /** The id. */
  readonly run?: string | undefined
  /** Those that have ended and that their upstream may still accept. */
  readonly unended?: boolean | undefined
}

/** Rows read in one request when a filter is narrow; the page is then short, and its cursor continues from there. */
const MOST_EXAMINED = 5_000
const CHUNK = 500

/**
 * Credentials for the administrator, newest first; only those that were issued. Those that live, and those that their
 * upstream may still accept, have indexes of their own. Of all others, the audit's indexes find those of an agent, a
 * backend or a run by their `credential.issued` entries.
 */
export async function listCredentials(
  core: Pick<Core, 'store'>,
  { limit = DEFAULT_PAGE, ...filter }: CredentialFilter,
): Promise<Page<CredentialView>> {
  const read = await sourceOf(core, filter)
  const items: CredentialView[] = []
  let cursor = filter.cursor
  let lastShown: string | undefined
  // Where every row is shown, the first chunk is the page.
  let size = Math.min(CHUNK, limit + 1)
  for (let examined = 0; examined < MOST_EXAMINED; examined += size) {
    if (examined > 0) size = CHUNK
    const chunk = await read(cursor, size)
    for (const { credential, at } of chunk) {
      cursor = at
      // Pruned, while its entry is kept; or of no interest.
      if (credential === undefined) continue
      const view = viewOf(credential, core.store.now())
      const issued = credential.state !== 'pending' && credential.state !== 'failed'
      if (!issued || (filter.status !== undefined && view.status !== filter.status)) continue
      // There is a next page only when one more is found.
      if (items.length === limit) return { items, next: lastShown }
      items.push(view)
      lastShown = at
    }
    if (chunk.length < size) return { items, next: undefined }
  }
  return { items, next: cursor }
}

interface Row {
  readonly credential: Credential | undefined
  /** The cursor after it. */
  readonly at: string
}
type Source = (cursor: string | undefined, size: number) => Promise<Row[]>

async function sourceOf(core: Pick<Core, 'store'>, filter: CredentialFilter): Promise<Source> {
  if (filter.run !== undefined && !isId('run', filter.run)) throw invalid('"run" must be the id of a run.')
  if (filter.unended === true) return openSource(core, filter, 'revoking')
  if (filter.status === 'active' && filter.run === undefined) return openSource(core, filter, 'active')
  if ([filter.agent, filter.backend, filter.run].every((one) => one === undefined)) {
    requireCursor(filter)
    return async (cursor, size) => atTheirIds(await core.store.credentials.list(cursor, size))
  }
  if (filter.cursor !== undefined && !isId('audit', `aud_${filter.cursor}`)) throw badCursor()
  const agentId = filter.agent === undefined ? undefined : await findAgentId(core, filter.agent)
  if (filter.agent !== undefined && agentId === undefined) return async () => []
  const backend = await findBackendName(core, filter.backend)
  return async (cursor, size) => {
    const question = { agentId, backend, runId: filter.run, action: 'credential.issued', before: cursor }
    const entries = await core.store.audit.credentialsOf(question, size)
    const found = await core.store.credentials.findAll(entries.flatMap((entry) => entry.credentialId ?? []))
    const byId = new Map(found.map((credential) => [credential.id, credential]))
    return entries.map((entry) => ({ credential: byId.get(entry.credentialId ?? ''), at: entry.id }))
  }
}

async function openSource(
  core: Pick<Core, 'store'>,
  filter: CredentialFilter,
  state: 'active' | 'revoking',
): Promise<Source> {
  requireCursor(filter)
  const agentId = filter.agent === undefined ? undefined : await findAgentId(core, filter.agent)
  if (filter.agent !== undefined && agentId === undefined) return async () => []
  const backend = await findBackendName(core, filter.backend)
  const isMine = (one: Credential | undefined) =>
    (agentId === undefined || one?.agentId === agentId) &&
    (backend === undefined || one?.backend === backend) &&
    (filter.run === undefined || one?.runId === filter.run)
  const of =
    agentId !== undefined && state === 'active'
      ? { state, agentId }
      : { state, ...(backend === undefined ? {} : { backend }) }
  return async (cursor, size) =>
    atTheirIds(await core.store.credentials.listOpen(of, cursor, size)).map((row) =>
      // Examined, and not shown.
      isMine(row.credential) ? row : { ...row, credential: undefined },
    )
}

const atTheirIds = (found: readonly Credential[]): Row[] =>
  found.map((credential) => ({ credential, at: credential.id }))

/** Of a listing whose cursors are ids of credentials. */
function requireCursor({ cursor }: CredentialFilter): void {
  if (cursor !== undefined && !isId('credential', cursor)) throw badCursor()
}

function badCursor() {
  return invalid('"cursor" is not one that this listing gave.')
}
