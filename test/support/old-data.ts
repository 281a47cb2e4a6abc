import type { Hasher } from '../../src/keys/bearer.ts'
import { mintLoginSecret } from '../../src/keys/login-secrets.ts'
import type { Table } from '../../src/store/schema/columns.ts'
import type { AgentRow, BackendRow, RunRow, SessionRow } from '../../src/store/schema/rows.ts'
import { codecs } from '../../src/store/tables/codecs.ts'
import { auditRow, credentialRow, newBody, newEnrollment, newOperator } from './store.ts'

export type Row = Readonly<Record<string, string | number | null>>
type TableRow = readonly [table: Table, row: Row]

/** What a server held when its version ended. */
export interface OldData {
  /** A living credential of the agent, and one that has ended. */
  readonly credential: string
  readonly ended: string
  /** A living run of the agent with a living credential; of schema 14 and later. */
  readonly run: string
  readonly credentialOfRun: string
  /** An operator whom a provider of single sign-on knows, and the token of their command; of schema 13 and later. */
  readonly operatorToken: string
  /** An enrollment that nobody has decided. */
  readonly enrollment: string
}

interface Given {
  readonly agent: Pick<AgentRow, 'id' | 'name'>
  readonly backend: Pick<BackendRow, 'uid' | 'name'>
  readonly hasher: Hasher
  /** Epoch ms. */
  readonly now: number
}

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const FROM = { ip_address: '10.0.0.7', user_agent: 'mayfly' }

/** By the newest columns: a schema that lacks a value's column, or the table, cannot have had such a row. */
export function oldData(given: Given): { readonly rows: TableRow[]; readonly held: OldData } {
  const { agent, now } = given
  const work = workOf(given)
  const people = peopleOf(given)
  const enrollment = newEnrollment({
    name: 'waiting',
    scopes: ['demo'],
    createdAt: now - HOUR_MS,
    expiresAt: now + HOUR_MS,
  })
  const rows: TableRow[] = [
    ...work.rows,
    ...people.rows,
    ['enrollments', codecs.enrollments.encode(enrollment)],
    ['agent_uses', { agent_id: agent.id, last_used_at: now - HOUR_MS, ip_address: FROM.ip_address }],
    [
      'agent_grants',
      { id: newBody(now), agent_id: agent.id, scopes: '["extra"]', created_at: now, expires_at: null },
    ],
    ['used_proofs', { id: 'a proof', expires_at: now + HOUR_MS }],
    ['revoked_tokens', { jti: 'a token', expires_at: now + HOUR_MS }],
    ['activity', { span: HOUR_MS, at: 0, backend: 'demo', action: 'credential.issued', count: 3 }],
    [
      'audit',
      auditRow({
        id: newBody(now - HOUR_MS),
        at: now - HOUR_MS,
        action: 'agent.created',
        agent_id: agent.id,
      }),
    ],
  ]
  return { rows, held: { ...work.held, ...people.held, enrollment: enrollment.id } }
}

function workOf({ agent, backend, now }: Given) {
  const run: RunRow = {
    id: `run_${newBody(now)}`,
    agent_id: agent.id,
    agent_name: agent.name,
    purpose: 'nightly',
    heartbeat_ms: MINUTE_MS,
    version: 1,
    started_at: now - HOUR_MS,
    expires_at: null,
    ended_at: null,
    reason: null,
    ended_by: null,
    last_beat: null,
    ...FROM,
  }
  const expiresAt = now + HOUR_MS / 2
  const own = {
    agent_id: agent.id,
    agent_name: agent.name,
    backend_uid: backend.uid,
    backend: backend.name,
    revocation: 'none',
    ttl_ms: HOUR_MS,
    created_at: expiresAt - HOUR_MS,
    expires_at: expiresAt,
    due_at: expiresAt,
    handle: null,
  }
  const credential = credentialRow(own)
  const past = {
    state: 'revoked',
    ended_at: now - 1,
    end_reason: 'revoked',
    settled_at: now - 1,
    due_at: null,
  }
  const ended = credentialRow({ ...own, ...past })
  const credentialOfRun = credentialRow({ ...own, run_id: run.id })
  const beat = { run_id: run.id, heartbeat_ms: MINUTE_MS, beat_at: now, due_at: now + 3 * MINUTE_MS }
  const rows: TableRow[] = [
    ['credentials', credential],
    ['credentials', ended],
    ['credentials', credentialOfRun],
    ['runs', run],
    ['run_beats', beat],
  ]
  return {
    rows,
    held: { credential: credential.id, ended: ended.id, run: run.id, credentialOfRun: credentialOfRun.id },
  }
}

function peopleOf({ hasher, now }: Given) {
  const invited = newOperator({ joinedAt: now - HOUR_MS, createdAt: now - HOUR_MS, logins: 1 })
  const known = newOperator({
    email: null,
    ...{ provider: 'corp', issuer: 'https://corp.test', subject: 'ada' },
    ...{ joinedAt: now - HOUR_MS, createdAt: now - HOUR_MS, logins: 1 },
  })
  const operatorToken = mintLoginSecret('operator')
  const session = (set: Partial<SessionRow>): SessionRow => ({
    id: `ses_${newBody(now)}`,
    operator_id: invited.id,
    secret_hash: hasher.hash(mintLoginSecret('session')),
    key_hash: hasher.hash(mintLoginSecret('key')),
    method: 'link',
    passkey_id: null,
    version: 1,
    created_at: now - HOUR_MS,
    last_used_at: now,
    expires_at: now + HOUR_MS,
    may_register_until: null,
    ...FROM,
    allowed_by: null,
    host: null,
    scopes: null,
    backend_scopes: null,
    confirmed_until: null,
    ...set,
  })
  const bySso = {
    ...{ operator_id: known.id, method: 'sso' },
    ...{ scopes: '["admin:agents:read"]', backend_scopes: '[]' },
  }
  const browser = session(bySso)
  const ofCommand = { method: 'browser', key_hash: '', allowed_by: browser.id, host: 'laptop' }
  const command = session({ ...bySso, ...ofCommand, secret_hash: hasher.hash(operatorToken) })
  const rows: TableRow[] = [
    ...[invited, known].map((operator): TableRow => ['operators', codecs.operators.encode(operator)]),
    ...[session({}), browser, command].map((row): TableRow => ['sessions', { ...row }]),
  ]
  return { rows, held: { operatorToken } }
}
