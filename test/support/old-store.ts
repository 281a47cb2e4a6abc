import { generateKeyPairSync } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import * as bearer from '../../src/keys/bearer.ts'
import { generateIssuerKey } from '../../src/keys/jwt-keys.ts'
import { createSealer, parseMasterKeys } from '../../src/keys/seal.ts'
import { migratable } from '../../src/store/postgres/migrate.ts'
import { MIGRATIONS } from '../../src/store/schema/migrate.ts'
import { newMasterKey } from './master-key.ts'
import { type OldData, oldData, type Row } from './old-data.ts'
import { newBody } from './store.ts'

/** What an agent has that enrolled while the store had an older schema. */
export interface OldAgent {
  readonly id: string
  readonly name: string
  readonly clientId: string
  readonly token: string
  readonly privateJwk: Record<string, unknown>
  /** Thumbprint of the server's key, as the command remembered it. */
  readonly serverKey: string
  /** What was there besides; of what the schema could hold. */
  readonly held: OldData
}

interface OldStore {
  /** Its `master.key` is written here, and the database file for SQLite. */
  readonly directory: string
  /** PostgreSQL, empty; SQLite without it. */
  readonly databaseUrl: string | undefined
  /** The last migration that this version knew, 5 or later. */
  readonly schema: number
  readonly issuer: string
}

/**
 * A store as a version left it that knew no later schema: one backend `demo`, one enrolled agent with all its scopes, and
 * what was under way.
 */
export async function makeOldStore({ directory, databaseUrl, schema, issuer }: OldStore): Promise<OldAgent> {
  const masterKey = newMasterKey()
  await writeFile(join(directory, 'master.key'), masterKey, { mode: 0o600 })
  const { rows, agent } = await rowsOf(masterKey, issuer)
  const known = MIGRATIONS.slice(0, schema)
  if (databaseUrl === undefined) {
    const db = new DatabaseSync(join(directory, 'mayfly.db'))
    db.exec('PRAGMA journal_mode = WAL')
    for (const { statements, version } of known)
      db.exec(`${statements('sqlite').join(';\n')}; PRAGMA user_version = ${version}`)
    const columns = db.prepare('SELECT name FROM pragma_table_info(?)')
    for (const [table, whole] of rows) {
      const row = asKnown(
        whole,
        columns.all(table).map(({ name }) => String(name)),
      )
      if (row !== undefined) db.prepare(insert(table, row, () => '?')).run(...Object.values(row))
    }
    db.close()
    return agent
  }
  const pool = new pg.Pool({ connectionString: databaseUrl })
  const target = migratable(pool)
  await target.version()
  for (const { statements, version } of known) await target.apply(statements('postgres'), version)
  const columns = 'SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1'
  for (const [table, whole] of rows) {
    const row = asKnown(
      whole,
      (await pool.query(columns, [table])).rows.map(({ name }) => name),
    )
    if (row === undefined) continue
    await pool.query(
      insert(table, row, (at) => `$${at + 1}`),
      Object.values(row),
    )
  }
  await pool.end()
  return agent
}

/** The row by these columns; undefined where they cannot hold it. */
function asKnown(row: Row, columns: readonly string[]): Row | undefined {
  const members = Object.entries(row)
  if (members.some(([name, value]) => value !== null && !columns.includes(name))) return undefined
  return Object.fromEntries(members.filter(([name]) => columns.includes(name)))
}

function insert(table: string, row: Row, place: (at: number) => string): string {
  const names = Object.keys(row)
  return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((_, at) => place(at)).join(', ')})`
}

async function rowsOf(
  masterKey: string,
  issuer: string,
): Promise<{ rows: (readonly [string, Row])[]; agent: OldAgent }> {
  const sealer = createSealer(parseMasterKeys(masterKey))
  const dataKey = bearer.generateDataKey()
  const hasher = bearer.createHasher(dataKey)
  const now = Date.now() - 86_400_000
  const key = await generateIssuerKey(issuer, now)
  const pair = generateKeyPairSync('ed25519')
  const signing = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const [id, clientId, uid] = [`ag_${newBody()}`, `agent_${newBody()}`, `be_${newBody()}`]
  const [token, secret] = [bearer.mintBearer(), bearer.mintClientSecret()]
  const name = 'veteran'
  const config = {
    audience: 'tests',
    algorithm: 'ES256',
    subject: 'agent_id',
    signing_key: JSON.stringify(signing),
  }
  const meta = (at: string, value: string): [string, Row] => ['meta', { key: at, value }]
  const rows: [string, Row][] = [
    meta('key_check', sealer.keyCheck()),
    meta('hash_key', sealer.seal('meta', 'hash_key', 'value', dataKey.toString('base64url'))),
    meta('issuer_key', key.kid),
    [
      'issuer_keys',
      {
        kid: key.kid,
        public_jwk: JSON.stringify(key.publicJwk),
        private_key: sealer.seal('issuer_keys', key.kid, 'private_key', key.privateKey),
        created_at: now,
        retires_at: null,
      },
    ],
    [
      'backends',
      {
        uid,
        name: 'demo',
        name_key: 'demo',
        type: 'jwt',
        config: sealer.seal('backends', uid, 'config', JSON.stringify(config)),
        default_ttl_ms: 600_000,
        max_ttl_ms: 3_600_000,
        allowed_scopes: null,
        description: null,
        rate: null,
        max_active: null,
        version: 1,
        created_at: now,
        changed_at: now,
        ended_at: null,
        ending: null,
      },
    ],
    [
      'agents',
      {
        id,
        name,
        name_key: name,
        scopes: '["demo"]',
        version: 1,
        bearer_hash: hasher.hash(token),
        client_id: clientId,
        client_secret_hash: hasher.hash(secret),
        public_jwk: JSON.stringify(pair.publicKey.export({ format: 'jwk' })),
        signing_key_id: '0123456789ABCDEF',
        signing_email: `${name}@mayfly.local`,
        policy: null,
        created_by: 'local',
        created_at: now,
        expires_at: null,
        ended_at: null,
        end_reason: null,
        audiences: null,
        bounds: null,
        description: null,
        rotation: null,
        previous_bearer_hash: null,
        previous_secret_hash: null,
        previous_until: null,
      },
    ],
  ]
  const privateJwk = pair.privateKey.export({ format: 'jwk' }) as Record<string, unknown>
  const besides = oldData({ agent: { id, name }, backend: { uid, name: 'demo' }, hasher, now: Date.now() })
  return {
    rows: [...rows, ...besides.rows],
    agent: { id, name, clientId, token, privateJwk, serverKey: key.kid, held: besides.held },
  }
}
