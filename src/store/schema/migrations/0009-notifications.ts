/**
 * How far each receiver of notifications has been told, the entries that it is told of, and when the root secret of a backend
 * should be replaced. The entries of the index are few, so that no issue and no end pays for it. Compared as in 0001.
 */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  const integer = dialect === 'sqlite' ? 'integer' : 'bigint'
  return [
    `CREATE TABLE receivers (
    name ${text} NOT NULL,
    position ${text} NOT NULL,
    told ${text} NOT NULL,
    failing_since ${integer},
    holder ${text} NOT NULL,
    held_until ${integer} NOT NULL,
    PRIMARY KEY (name)
  )${dialect === 'sqlite' ? ' STRICT' : ''}`,
    `CREATE INDEX audit_notable ON audit (id) WHERE ${NOTABLE}`,
    `ALTER TABLE backends ADD COLUMN rotate_root_after_ms ${integer}`,
    `ALTER TABLE backends ADD COLUMN root_set_at ${integer}`,
  ]
}

const NOTABLE =
  "action IN ('enrollment.requested', 'credential.revoke_failed', 'backend.down', 'backend.up', 'backend.root_aged', 'certificate.expiring', 'notification.dropped')"
