import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import type { Change } from '../engine/change.ts'
import type { Table } from '../schema/rows.ts'

/** Tables whose key is minted for the one row: finding it proves that this very change was kept. */
const WITNESSES: Partial<Record<Table, string>> = {
  audit: 'id',
  credentials: 'id',
  agents: 'id',
  agent_grants: 'id',
  enrollments: 'id',
  backends: 'uid',
}
const TRIES = 7
const FIRST_WAIT_MS = 100

/** For each change: whether it was kept; undefined where it inserts nothing to tell by. */
export type Verdicts = (boolean | undefined)[]

/** The process id of the session, as its server told when the connection began. */
export function pidOf(client: pg.PoolClient): number | undefined {
  return 'processID' in client && typeof client.processID === 'number' ? client.processID : undefined
}

/**
 * The connection was lost before the reply came. Its backend may still be at work, so it is ended and seen to
 * be gone before our own ids are read back. Throws when the database cannot be asked for some seconds.
 */
export async function readBack(
  pool: pg.Pool,
  session: { pid: number | undefined; application: string },
  changes: readonly Change[],
): Promise<Verdicts> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      if (await isGone(pool, session)) return await findKept(pool, changes)
      if (attempt >= TRIES) throw new Error('the lost connection is still at work')
    } catch (error) {
      if (attempt >= TRIES) throw error
    }
    await setTimeout(FIRST_WAIT_MS * 2 ** Math.min(attempt, 4))
  }
}

/** The application's name is this node's alone, so a reused process id ends nothing of anybody else's. */
async function isGone(
  pool: pg.Pool,
  { pid, application }: { pid: number | undefined; application: string },
): Promise<boolean> {
  const answer = await pool.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2 AND pid <> pg_backend_pid()',
    [pid ?? 0, application],
  )
  return answer.rowCount === 0
}

async function findKept(pool: pg.Pool, changes: readonly Change[]): Promise<Verdicts> {
  const witnesses = changes.map(witnessOf)
  const kept = new Set<string>()
  for (const [table, key] of Object.entries(WITNESSES)) {
    const ids = witnesses.filter((one) => one?.table === table).map((one) => one?.id)
    if (ids.length === 0) continue
    const answer = await pool.query(`SELECT ${key} AS id FROM ${table} WHERE ${key} = ANY ($1::text[])`, [
      ids,
    ])
    for (const row of answer.rows as { id: string }[]) kept.add(`${table}:${row.id}`)
  }
  return witnesses.map((one) => (one === undefined ? undefined : kept.has(`${one.table}:${one.id}`)))
}

function witnessOf(change: Change): { table: Table; id: string } | undefined {
  for (const step of change) {
    const key = step.op === 'insert' ? WITNESSES[step.table] : undefined
    if (step.op !== 'insert' || key === undefined) continue
    const id = (step.row as unknown as Record<string, unknown>)[key]
    if (typeof id === 'string') return { table: step.table, id }
  }
  return undefined
}
