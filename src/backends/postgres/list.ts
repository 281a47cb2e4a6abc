import { namedAccounts } from '../account-name.ts'
import type { ListedPage } from '../kind.ts'
import { replyOf } from './invoke.ts'
import { listOf } from './procedures.ts'
import { quoteLiteral } from './statements.ts'
import type { Upstream } from './upstream.ts'

/** Their names have 29 characters that need no quoting. */
export const roles = namedAccounts('username', 'a role')

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
  const found = replyOf<readonly { name: string; until: string | null }[]>(rows)
  const items = found.flatMap(({ name, until }) => roles.listed(name, Date.parse(until ?? '')))
  const last = found.length < PAGE ? undefined : found.at(-1)?.name
  return { items, ...(last === undefined ? {} : { next: last }) }
}
