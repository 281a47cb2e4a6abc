import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { AuditFilter } from './filter.ts'

/** Values for the leading columns of an index, in its order. */
export type IndexPrefix = readonly (readonly [
  column: 'actor' | 'agent_id' | 'backend' | 'action',
  value: string,
])[]

/** The part of a filter's result that one index holds. Each entry belongs to exactly one share. */
export interface Share extends AuditFilter {
  /** The first columns of the index. Backend, action and id follow, or, with `isInOrder`, the id alone. */
  readonly leading: IndexPrefix
  readonly isInOrder?: boolean | undefined
  /** The condition of a partial index. */
  readonly within?: RawBuilder<SqlBool> | undefined
  /** Actions that belong to another share. */
  readonly without?: readonly string[] | undefined
}

/** The system itself does most of these, and there are as many as credentials. */
const OF_SYSTEM = ['credential.expired', 'credential.settled']

/**
 * Entries whose actor is not the usual one: the system for the actions above, the agent itself for all others. The text
 * must equal the condition of the partial index, which is not used otherwise.
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
