import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { AuditFilter } from './filter.ts'

/** Values for the columns of an index up to its last one, in its order. */
export type IndexPrefix = readonly (readonly [
  column: 'actor' | 'agent_id' | 'backend' | 'action',
  value: string,
])[]

/** What of a filter's answer one index holds, each entry in exactly one share. */
export interface Share extends AuditFilter {
  /** The first columns of the index; backend, action and id follow, or the id at once. */
  readonly leading: IndexPrefix
  readonly isInOrder?: boolean | undefined
  /** What the index is limited to. */
  readonly within?: RawBuilder<SqlBool> | undefined
  /** Actions that are another share's. */
  readonly without?: readonly string[] | undefined
}

/** Most of what they record is nobody's doing, and as much as there are credentials. */
const OF_SYSTEM = ['credential.expired', 'credential.settled']

/**
 * Done by another than who does it as a rule: the system itself, or for other actions the agent that they are about.
 * Word for word as in the definition of the index, which is not used otherwise.
 */
const UNUSUAL = sql<SqlBool>`actor <> CASE WHEN action IN ('credential.expired', 'credential.settled') THEN 'system' ELSE agent_id END`

export function sharesOf(filter: AuditFilter): Share[] {
  const { actor, agentId, action } = filter
  const agent: IndexPrefix = agentId === undefined ? [] : [['agent_id', agentId]]
  if (actor === undefined) return [{ ...filter, leading: agent }]
  const isInOrder = [agentId, filter.backend, action].every((one) => one === undefined)
  const unusual: Share = { ...filter, leading: [['actor', actor], ...agent], isInOrder, within: UNUSUAL }
  if (actor === 'system') {
    const own = OF_SYSTEM.filter((one) => action === undefined || action === one)
    return [unusual, ...own.map((one): Share => ({ ...filter, action: one, leading: agent }))]
  }
  if (agentId !== undefined && agentId !== actor) return [unusual]
  if (action !== undefined && OF_SYSTEM.includes(action)) return [unusual]
  return [unusual, { ...filter, leading: [['agent_id', actor]], without: OF_SYSTEM }]
}
