/**
 * What a proxy needs (ADR 0070): the rules of use of a backend, and what proxies tell of the requests of runs, a row for each
 * batch. Small columns come before the lines, so that SQLite reads past long rows without their text. Compared as in 0001.
 * Receivers of notifications are told of misused placeholders, too.
 */
const TABLES = [
  `CREATE TABLE run_requests (
    run_id text NOT NULL,
    id text NOT NULL,
    batch text NOT NULL,
    at bigint NOT NULL,
    count bigint NOT NULL,
    refused bigint NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (run_id, id)
  )`,
  `CREATE TABLE run_request_counts (
    run_id text NOT NULL,
    total bigint NOT NULL,
    kept bigint NOT NULL,
    refused bigint NOT NULL,
    redacted bigint NOT NULL,
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
    'CREATE UNIQUE INDEX run_requests_batch ON run_requests (run_id, batch)',
    'CREATE INDEX run_requests_refused ON run_requests (run_id, id) WHERE refused > 0',
    `ALTER TABLE backends ADD COLUMN uses ${text}`,
    'DROP INDEX audit_notable',
    `CREATE INDEX audit_notable ON audit (id) WHERE ${NOTABLE}`,
  ]
}

const NOTABLE =
  "action IN ('enrollment.requested', 'credential.revoke_failed', 'backend.down', 'backend.up', 'backend.root_aged', 'certificate.expiring', 'notification.dropped', 'placeholder.misused')"
