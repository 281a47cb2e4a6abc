/**
 * Runs, their beats, and the run of a credential and of an entry. The new columns may be null, so no row is rewritten; the
 * index of entries holds only those of runs. An index of credentials by run would cost issuing another tenth: they are found among
 * what lives of their agent. Compared as in 0001.
 */
const TABLES = [
  `CREATE TABLE runs (
    id text NOT NULL,
    agent_id text NOT NULL,
    agent_name text NOT NULL,
    purpose text,
    heartbeat_ms bigint NOT NULL,
    version bigint NOT NULL,
    started_at bigint NOT NULL,
    expires_at bigint,
    ended_at bigint,
    reason text,
    ended_by text,
    last_beat bigint,
    ip_address text,
    user_agent text,
    PRIMARY KEY (id)
  )`,
  `CREATE TABLE run_beats (
    run_id text NOT NULL,
    heartbeat_ms bigint NOT NULL,
    beat_at bigint NOT NULL,
    due_at bigint NOT NULL,
    PRIMARY KEY (run_id)
  )`,
]

export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  return [
    ...TABLES.map((sql) =>
      dialect === 'postgres'
        ? sql.replaceAll(/ text\b/g, ' text COLLATE "C"')
        : `${sql.replaceAll(' bigint', ' integer')} STRICT`,
    ),
    'CREATE INDEX runs_agent ON runs (agent_id, id)',
    'CREATE INDEX runs_living ON runs (agent_id, id) WHERE ended_at IS NULL',
    'CREATE INDEX runs_open ON runs (id) WHERE ended_at IS NULL',
    'CREATE INDEX runs_expiry ON runs (expires_at) WHERE ended_at IS NULL AND expires_at IS NOT NULL',
    'CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL',
    'CREATE INDEX run_beats_due ON run_beats (due_at)',
    `ALTER TABLE credentials ADD COLUMN run_id ${text}`,
    'DROP INDEX credentials_living',
    `CREATE INDEX credentials_living ON credentials (agent_id, id, run_id${dialect === 'sqlite' ? ', ended_at' : ''}) WHERE ended_at IS NULL`,
    `ALTER TABLE audit ADD COLUMN run_id ${text}`,
    'CREATE INDEX audit_run ON audit (run_id, id) WHERE run_id IS NOT NULL',
  ]
}
