import { expect } from 'vitest'
import {
  CREDENTIALS,
  type Issued,
  logIn,
  must,
  type Row,
  type StoredCredential,
  type World,
} from './fault-world.ts'
import type { AcknowledgedState, KnownCredential } from './kill-load.ts'
import type { ServerProcess } from './server-process.ts'

/** The latest expiry of the short-lived credentials, epoch ms. */
export function lastShortExpiry(state: AcknowledgedState): number {
  const ends = [...state.credentials.values()].filter((one) => one.short)
  return Math.max(0, ...ends.map(({ issued }) => Date.parse(issued.expires_at)))
}

export async function activeAgentIds(server: ServerProcess): Promise<Set<string>> {
  const ids = new Set<string>()
  for (let cursor = ''; ; ) {
    const page = await must<{ id: string }[]>(server, undefined, 'GET', `/v1/admin/agents?limit=100${cursor}`)
    for (const { id } of page) ids.add(id)
    if (page.length < 100) return ids
    cursor = `&cursor=${page.at(-1)?.id}`
  }
}

/** Every acknowledged agent and credential exists, and every acknowledged end took effect. */
export async function checkAcknowledged(
  server: ServerProcess,
  state: AcknowledgedState,
  alive: Set<string>,
): Promise<void> {
  for (const agent of state.agents) {
    if (agent.deleted === 'no') expect(alive.has(agent.id), agent.name).toBe(true)
    if (agent.deleted === 'done') expect(alive.has(agent.id), agent.name).toBe(false)
  }
  for (const known of state.credentials.values()) await checkRecord(server, known, alive)
}

const POSTGRES = { backend: 'db', logIn }

/** Logs in with every credential of the backend that no client asked to end; returns their number. */
export async function checkLogins(
  state: AcknowledgedState,
  alive: Set<string>,
  { backend, logIn }: { backend: string; logIn(issued: Issued): Promise<void> } = POSTGRES,
): Promise<number> {
  let logins = 0
  for (const { issued, agent, revoked, short } of state.credentials.values()) {
    if (issued.backend !== backend || revoked !== 'no' || short || !alive.has(agent.id)) continue
    await logIn(issued)
    logins += 1
  }
  return logins
}

/** Every acknowledged or recorded change has exactly one audit entry. */
export async function checkAudit(world: World, state: AcknowledgedState, alive: Set<string>): Promise<void> {
  const rows = await world.rows<StoredCredential>(CREDENTIALS)
  const count = await countEntries(world)
  for (const { issued, revoked } of state.credentials.values()) {
    expect(count('credential.issued', issued.id), issued.id).toBe(1)
    if (revoked === 'done') expect(count('credential.revoked', issued.id), issued.id).toBe(1)
  }
  for (const row of rows) checkEntries(row, count)
  for (const agent of state.agents) {
    expect(count('agent.created', agent.id)).toBe(1)
    expect(count('agent.deleted', agent.id)).toBe(alive.has(agent.id) ? 0 : 1)
  }
}

async function checkRecord(server: ServerProcess, known: KnownCredential, alive: Set<string>): Promise<void> {
  const { issued, agent, revoked, revokedAt, short } = known
  const record = await must(server, undefined, 'GET', `/api/v1/credentials/${issued.id}`)
  const { id, backend, scopes, expires_at, created_at } = issued
  expect(record).toMatchObject({ id, backend, scopes, expires_at, created_at, agent: agent.name })
  const status = record['status']
  if (short) expect(['expired', 'revoked']).toContain(status)
  else if (!alive.has(agent.id)) expect(status).toBe('revoked')
  else if (revoked === 'no') expect(status).toBe('active')
  if (revoked === 'done') expect(record).toMatchObject({ status: 'revoked', revoked_at: revokedAt })
}

async function countEntries(world: World): Promise<(action: string, id: string) => number> {
  const rows = await world.rows<Row>(
    `SELECT action, coalesce(credential_id, agent_id) AS id, count(*) AS n FROM audit
      WHERE outcome = 'ok' GROUP BY action, coalesce(credential_id, agent_id)`,
  )
  const counts = new Map(rows.map((row) => [`${row['action']} ${row['id']}`, Number(row['n'])]))
  return (action, id) => counts.get(`${action} ${id}`) ?? 0
}

/** One entry for the issue, if the credential was issued, and one for its end, if it ended. */
function checkEntries(row: StoredCredential, count: (action: string, id: string) => number): void {
  const { id, state, end_reason: reason } = row
  const ends = count('credential.revoked', id) + count('credential.expired', id)
  const wasIssued = state === 'active' || (state !== 'failed' && reason !== 'interrupted')
  const about = JSON.stringify(row)
  if (row.revocation === 'exact') expect(count('credential.requested', id), about).toBe(1)
  if (state === 'active') expect(ends, about).toBe(0)
  else expect(ends, about).toBeLessThanOrEqual(1)
  if (reason === 'expired') expect(count('credential.expired', id), about).toBe(1)
  if (reason === 'revoked') expect(count('credential.revoked', id), about).toBe(1)
  // A credential that was pending when its agent was deleted was never issued.
  if (reason === 'agent_deleted') expect(count('credential.issued', id), about).toBeLessThanOrEqual(1)
  else expect(count('credential.issued', id), about).toBe(wasIssued ? 1 : 0)
}
