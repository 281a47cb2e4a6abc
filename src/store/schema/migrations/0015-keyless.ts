/**
 * Keyless login: the entry that an agent came under and the values it is bound to, the living logins of such agents, and when
 * each entry was last trusted by a node. The new columns may be null, so no row is rewritten. Compared as in 0001.
 */
const TABLES = [
  `CREATE TABLE logins (
    jti text NOT NULL,
    agent_id text NOT NULL,
    expires_at bigint NOT NULL,
    run_id text,
    PRIMARY KEY (jti)
  )`,
  `CREATE TABLE trusts (
    entry text NOT NULL,
    trusted_at bigint NOT NULL,
    PRIMARY KEY (entry)
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
    'CREATE INDEX logins_agent ON logins (agent_id, expires_at)',
    'CREATE INDEX logins_expiry ON logins (expires_at)',
    `ALTER TABLE agents ADD COLUMN identity ${text}`,
    `ALTER TABLE agents ADD COLUMN identity_values ${text}`,
    'CREATE INDEX agents_identity ON agents (identity, id) WHERE ended_at IS NULL AND identity IS NOT NULL',
    // The claims of a platform, by the beginning of their names; and those that nobody has decided in time.
    "CREATE INDEX enrollments_claims ON enrollments (name) WHERE status = 'pending' AND type = 'claim'",
    "CREATE INDEX enrollments_undecided ON enrollments (expires_at) WHERE status = 'pending'",
  ]
}
