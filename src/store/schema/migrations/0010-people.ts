/**
 * People: operators, their passkeys and sessions, the links by which they come in, and the challenges that a session was
 * given. All tables are new. Secrets are kept as keyed hashes only. Compared as in 0001.
 */
const STATEMENTS = [
  `CREATE TABLE operators (
    id text NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    scopes text NOT NULL,
    backend_scopes text NOT NULL,
    version bigint NOT NULL,
    logins bigint NOT NULL,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    joined_at bigint,
    last_login_at bigint,
    ended_at bigint,
    PRIMARY KEY (id)
  )`,
  `CREATE TABLE passkeys (
    id text NOT NULL,
    operator_id text NOT NULL,
    credential_id text NOT NULL,
    name text NOT NULL,
    public_key text NOT NULL,
    counter bigint NOT NULL,
    backup text NOT NULL,
    transports text NOT NULL,
    rp_id text NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint,
    PRIMARY KEY (id)
  )`,
  `CREATE TABLE sessions (
    id text NOT NULL,
    operator_id text NOT NULL,
    secret_hash text NOT NULL,
    key_hash text NOT NULL,
    method text NOT NULL,
    passkey_id text,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    may_register_until bigint,
    ip_address text,
    user_agent text,
    PRIMARY KEY (id)
  )`,
  `CREATE TABLE login_links (
    secret_hash text NOT NULL,
    kind text NOT NULL,
    operator_id text,
    created_at bigint NOT NULL,
    created_by text NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (secret_hash)
  )`,
  `CREATE TABLE challenges (
    challenge text NOT NULL,
    purpose text NOT NULL,
    session_id text NOT NULL,
    nonce text NOT NULL,
    made_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (challenge)
  )`,
  'CREATE UNIQUE INDEX operators_living_email ON operators (email) WHERE ended_at IS NULL',
  'CREATE INDEX passkeys_operator ON passkeys (operator_id)',
  'CREATE UNIQUE INDEX passkeys_credential ON passkeys (credential_id)',
  'CREATE INDEX sessions_operator ON sessions (operator_id)',
  'CREATE UNIQUE INDEX sessions_secret ON sessions (secret_hash)',
]

export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  if (dialect === 'postgres') return STATEMENTS.map((sql) => sql.replaceAll(/ text\b/g, ' text COLLATE "C"'))
  return STATEMENTS.map((sql) =>
    sql.startsWith('CREATE TABLE') ? `${sql.replaceAll(' bigint', ' integer')} STRICT` : sql,
  )
}
