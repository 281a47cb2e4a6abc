/** Fills a store while the server is down, with the rows that the server would have written, in the order of their ids. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { encodeTail, encodeTime } from '../src/domain/ids.ts'
import { SESSION_MS } from '../src/domain/limits.ts'
import { columnNames, columnTypes } from '../src/store/schema/columns.ts'
import type {
  AgentRow,
  AuditRow,
  CredentialRow,
  OperatorRow,
  PasskeyRow,
  SessionRow,
  Table,
} from '../src/store/schema/rows.ts'

export interface Where {
  readonly dataDir: string
  /** PostgreSQL if given, otherwise SQLite. */
  readonly databaseUrl: string | undefined
}

/** An existing agent or backend. */
export interface Known {
  readonly id: string
  readonly name: string
}

export interface Content {
  readonly agents: readonly Known[]
  readonly backends: readonly Known[]
}

const random = randomBytes(65_536)
const HOUR = 3_600_000

/** The same sequence of random numbers in every run, each less than `below`. */
export function createDice(): (below: number) => number {
  let seed = 1
  return (below) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed >>> 8) % below
  }
}

/** The body of the n-th id at a time. */
function bodyAt(ms: number, n: number): string {
  return encodeTime(ms) + encodeTail(n & 4_095, random, (n * 13) % 65_000)
}

/** Agents that never log in; their secrets are discarded. */
export function extraAgents(count: number, now: number): AgentRow[] {
  return Array.from({ length: count }, (_, n) => {
    const name = `seeded-${n}`
    const unique = bodyAt(now, n) + n
    return {
      id: `ag_${bodyAt(now - 2_000 - (count - n), n)}`,
      name,
      name_key: name,
      scopes: '["bench:*"]',
      version: 1,
      bearer_hash: `bearer-${unique}`,
      client_id: `agent_${bodyAt(now - 2_000 - (count - n), n)}`,
      client_secret_hash: `secret-${unique}`,
      public_jwk: null,
      signing_key_id: unique,
      signing_email: `${name}@mayfly.local`,
      policy: null,
      created_by: 'local',
      created_at: now - 2_000,
      expires_at: null,
      ended_at: null,
      provider: null,
      issuer: null,
      subject: null,
      end_reason: null,
      audiences: null,
      bounds: null,
      description: null,
      rotation: null,
      previous_bearer_hash: null,
      previous_secret_hash: null,
      previous_until: null,
      owner: null,
      identity: null,
      identity_values: null,
    }
  })
}

export interface People {
  readonly operators: OperatorRow[]
  readonly passkeys: PasskeyRow[]
  readonly sessions: SessionRow[]
}

/** Operators who each have a passkey and as many sessions, all used just now; what they log in with is discarded. */
export function loggedIn(count: number, sessionsOfEach: number, now: number): People {
  const people: People = { operators: [], passkeys: [], sessions: [] }
  for (let n = 0; n < count; n += 1) {
    const operator = operatorAt(n, sessionsOfEach, now)
    const passkey = passkeyOf(operator, n, now)
    people.operators.push(operator)
    people.passkeys.push(passkey)
    for (let each = 0; each < sessionsOfEach; each += 1)
      people.sessions.push(sessionOf(passkey, n * sessionsOfEach + each, now))
  }
  return people
}

function operatorAt(n: number, logins: number, now: number): OperatorRow {
  const name = `seeded-${n}`
  return {
    id: `op_${bodyAt(now - 2_000, n)}`,
    email: `${name}@example.com`,
    name,
    scopes: '["admin:*"]',
    backend_scopes: '["*"]',
    version: 1,
    logins,
    created_at: now - 2_000,
    created_by: 'local',
    joined_at: now - 1_000,
    last_login_at: now,
    ended_at: null,
    provider: null,
    issuer: null,
    subject: null,
  }
}

function passkeyOf({ id }: OperatorRow, n: number, now: number): PasskeyRow {
  return {
    id: `pk_${bodyAt(now - 1_000, n)}`,
    operator_id: id,
    credential_id: randomText(n),
    name: 'laptop',
    public_key: randomText(n),
    counter: 0,
    backup: 'none',
    transports: '["internal"]',
    rp_id: 'localhost',
    created_at: now - 1_000,
    last_used_at: now,
  }
}

function sessionOf({ id, operator_id }: PasskeyRow, n: number, now: number): SessionRow {
  return {
    id: `ses_${bodyAt(now, n)}`,
    operator_id,
    secret_hash: randomText(n),
    key_hash: randomText(n + 1),
    method: 'passkey',
    passkey_id: id,
    version: 1,
    created_at: now,
    last_used_at: now,
    expires_at: now + SESSION_MS,
    may_register_until: null,
    ip_address: '10.0.0.1',
    user_agent: 'Mozilla/5.0',
    allowed_by: null,
    host: null,
    scopes: null,
    backend_scopes: null,
    confirmed_until: null,
  }
}

/** Prefers the first few of the list. */
function skewed<T>(all: readonly T[], point: number): T {
  return all[Math.floor(all.length * point * point)]!
}

/** The n-th of `count` credentials, spread evenly over 30 days; the last tenth is active for another day. */
export function credentialAt(
  content: Content,
  n: number,
  count: number,
  now: number,
  dice: (below: number) => number,
): CredentialRow {
  const at = timeOf(n, count, now)
  const agent = skewed(content.agents, dice(65_536) / 65_536)
  const backend = skewed(content.backends, dice(65_536) / 65_536)
  const active = n >= count * 0.9
  const expires = active ? now + 24 * HOUR : at + HOUR
  const ended = active ? null : Math.min(expires, now)
  return {
    id: `cred_${bodyAt(at, n)}`,
    agent_id: agent.id,
    agent_name: agent.name,
    backend_uid: backend.id,
    backend: backend.name,
    scopes: '["orders:read"]',
    state: active ? 'active' : 'expired',
    revocation: 'none',
    ttl_ms: HOUR,
    created_at: at,
    expires_at: active ? expires : Math.min(expires, now),
    upstream_expires_at: null,
    ended_at: ended,
    end_reason: active ? null : 'expired',
    settled_at: ended,
    due_at: active ? expires : null,
    attempts: 0,
    stuck_at: null,
    secret_hash: randomText(n),
    handle: null,
    failure: null,
    run_id: null,
  }
}

/** An active credential that expires at `dueAt`. */
export function dueCredential(content: Content, n: number, now: number, dueAt: number): CredentialRow {
  const row = credentialAt(content, 1, 1, now, (below) => (n * 7_919) % below)
  const id = `cred_${bodyAt(now - 60_000 + Math.floor(n / 4_096), n)}`
  return { ...row, id, expires_at: dueAt, due_at: dueAt }
}

const ACTIONS: readonly (readonly [action: string, weight: number])[] = [
  ['credential.issued', 460],
  ['credential.expired', 360],
  ['credential.revoked', 90],
  ['token.issued', 70],
  ['credential.issue_failed', 8],
  ['auth.failed', 6],
  ['signing_key.read', 3],
  ['agent.created', 1],
  ['credential.revoke_failed', 1],
  ['keys.rotated', 1],
]
/** One entry in a thousand. */
export const RARE_ACTION = 'agent.created'
export const COMMON_ACTION = 'credential.issued'

/** The n-th of `count` entries, about the given credential if the action concerns one. */
export function entryAt(
  about: CredentialRow,
  n: number,
  count: number,
  now: number,
  dice: (below: number) => number,
  admins: readonly Known[],
): AuditRow {
  const at = timeOf(n, count, now)
  const action = actionAt(dice(1_000))
  const ofCredential = action.startsWith('credential.')
  return {
    id: bodyAt(at, n),
    at,
    action,
    outcome: action.endsWith('failed') ? 'failed' : 'ok',
    agent_id: action === 'auth.failed' ? '' : about.agent_id,
    agent_name: action === 'auth.failed' ? null : about.agent_name,
    actor: actorOf(action, about, admins, dice),
    backend: ofCredential ? about.backend : '',
    credential_id: ofCredential ? about.id : null,
    scopes: about.scopes,
    ttl_ms: ofCredential ? HOUR : null,
    ip_address: '10.0.0.1',
    user_agent: 'mayfly/0.1.0',
    auth_method: 'opaque',
    request_id: `req_${bodyAt(at, n + 1)}`,
    metadata: null,
    details: null,
    run_id: null,
  }
}

/** One entry in fifty is by an administrator: the local host, or one of a few agents. */
function actorOf(
  action: string,
  about: CredentialRow,
  admins: readonly Known[],
  dice: (below: number) => number,
): string {
  const point = dice(300)
  if (point < 6) return admins[point - 1]?.id ?? 'local'
  return action === 'credential.expired' ? 'system' : about.agent_id
}

function actionAt(point: number): string {
  let rest = point
  for (const [action, weight] of ACTIONS) {
    if (rest < weight) return action
    rest -= weight
  }
  return COMMON_ACTION
}

/** Evenly over thirty days that ended two minutes ago. */
export function timeOf(n: number, count: number, now: number): number {
  return Math.floor(now - 120_000 - ((count - n) / count) * 30 * 24 * HOUR)
}

function randomText(n: number): string {
  return random.toString('base64url', (n * 17) % 65_000, ((n * 17) % 65_000) + 32)
}

type Row = Record<string, string | number | null>

/** Fills whole tables without their indexes, then creates the indexes. */
export async function fill(
  where: Where,
  tables: { readonly [T in Table]?: Iterable<object> },
): Promise<void> {
  for (const [table, rows] of Object.entries(tables) as [Table, Iterable<Row>][]) {
    if (where.databaseUrl === undefined) fillSqlite(where.dataDir, table, rows)
    else await fillPostgres(where.databaseUrl, table, rows)
  }
}

function fillSqlite(dataDir: string, table: Table, rows: Iterable<Row>): void {
  const db = new DatabaseSync(join(dataDir, 'mayfly.db'))
  const listed = 'SELECT name, sql FROM sqlite_master WHERE tbl_name = ? AND sql LIKE ?'
  const indexes = db.prepare(listed).all(table, 'CREATE INDEX%') as unknown as { name: string; sql: string }[]
  const columns = columnNames(table)
  const insert = db.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN')
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`)
  for (const row of rows) insert.run(...columns.map((column) => row[column] ?? null))
  for (const { sql } of indexes) db.exec(sql)
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

const ROWS_AT_ONCE = 20_000

async function fillPostgres(url: string, table: Table, rows: Iterable<Row>): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const listed =
      "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1 AND indexdef LIKE 'CREATE INDEX%'"
    const indexes: { indexname: string; indexdef: string }[] = (await client.query(listed, [table])).rows
    const columns = columnTypes(table)
    const names = columns.map(([name]) => name)
    const arrays = columns.map(([, type], index) => `$${index + 1}::${type}[]`)
    const insert = `INSERT INTO ${table} (${names.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`
    await client.query('SET synchronous_commit = off')
    await client.query("SET maintenance_work_mem = '512MB'")
    for (const { indexname } of indexes) await client.query(`DROP INDEX ${indexname}`)
    let some: Row[] = []
    const flush = async () => {
      await client.query(
        insert,
        names.map((name) => some.map((row) => row[name] ?? null)),
      )
      some = []
    }
    for (const row of rows) if (some.push(row) === ROWS_AT_ONCE) await flush()
    if (some.length > 0) await flush()
    for (const { indexdef } of indexes) await client.query(indexdef)
    await client.query(`VACUUM ANALYZE ${table}`)
    await client.query('CHECKPOINT')
  } finally {
    await client.end()
  }
}
