import { isId } from '../../domain/ids.ts'
import type { Listed, ListedPage } from '../kind.ts'
import { replyOf } from './invoke.ts'
import { listOf, ROLE_PREFIX } from './procedures.ts'
import { quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

const PAGE = 500

/** Everybody may read pg_roles; the function keeps what the setup script promises in one place. */
export async function listRoles(
  { settings, revoking, server: ask }: Upstream,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ListedPage> {
  const { way } = await ask(revoking, signal)
  const [from, limit] = [quoteLiteral(after ?? ''), String(PAGE)]
  const list = way === 'functions' ? `mayfly.list(${from}, ${limit})` : listOf(from, limit)
  const rows = await revoking.transact(settings.database, signal, [`SELECT ${list}::text AS reply`])
  const roles = replyOf<readonly { name: string; until: string | null }[]>(rows)
  const items = roles.flatMap(({ name, until }): Listed[] => {
    const credentialId = `cred_${name.slice(ROLE_PREFIX.length)}`
    if (!isId('credential', credentialId)) return []
    const expiresAt = until === null ? Number.NaN : Date.parse(until)
    return [{ credentialId, handle: { username: name }, ...(Number.isNaN(expiresAt) ? {} : { expiresAt }) }]
  })
  const last = roles.length < PAGE ? undefined : roles.at(-1)?.name
  return { items, ...(last === undefined ? {} : { next: last }) }
}
