/**
 * Single sign-on and logins of commands: operators whom a provider knows, sessions of commands, and the logins that wait for a
 * person. Only small tables are rewritten. Compared as in 0001.
 */
const OPERATORS = `(
    id text NOT NULL,
    email text,
    name text NOT NULL,
    scopes text NOT NULL,
    backend_scopes text NOT NULL,
    version integer NOT NULL,
    logins integer NOT NULL,
    created_at integer NOT NULL,
    created_by text NOT NULL,
    joined_at integer,
    last_login_at integer,
    ended_at integer,
    provider text,
    issuer text,
    subject text,
    PRIMARY KEY (id)
  ) STRICT`

/** SQLite cannot take `NOT NULL` away from a column. */
const SQLITE_OPERATORS = [
  'DROP INDEX operators_living_email',
  'ALTER TABLE operators RENAME TO operators_before',
  `CREATE TABLE operators ${OPERATORS}`,
  'INSERT INTO operators SELECT *, NULL, NULL, NULL FROM operators_before',
  'DROP TABLE operators_before',
]

const POSTGRES_OPERATORS = [
  'DROP INDEX operators_living_email',
  'ALTER TABLE operators ALTER COLUMN email DROP NOT NULL',
  'ALTER TABLE operators ADD COLUMN provider text COLLATE "C"',
  'ALTER TABLE operators ADD COLUMN issuer text COLLATE "C"',
  'ALTER TABLE operators ADD COLUMN subject text COLLATE "C"',
]

const COMMAND_LOGINS = `CREATE TABLE command_logins (
    code_hash text NOT NULL,
    kind text NOT NULL,
    user_code_hash text,
    state text NOT NULL,
    host text NOT NULL,
    ip_address text,
    user_agent text,
    operator_id text,
    session_id text,
    redirect_uri text,
    code_challenge text,
    polled_at bigint,
    poll_ms bigint,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (code_hash)
  )`

export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const isPostgres = dialect === 'postgres'
  const text = isPostgres ? 'text COLLATE "C"' : 'text'
  const integer = isPostgres ? 'bigint' : 'integer'
  return [
    ...(isPostgres ? POSTGRES_OPERATORS : SQLITE_OPERATORS),
    'CREATE UNIQUE INDEX operators_living_email ON operators (email) WHERE ended_at IS NULL AND issuer IS NULL',
    'CREATE UNIQUE INDEX operators_living_subject ON operators (issuer, subject) WHERE ended_at IS NULL AND issuer IS NOT NULL',
    `ALTER TABLE sessions ADD COLUMN allowed_by ${text}`,
    `ALTER TABLE sessions ADD COLUMN host ${text}`,
    `ALTER TABLE sessions ADD COLUMN scopes ${text}`,
    `ALTER TABLE sessions ADD COLUMN backend_scopes ${text}`,
    `ALTER TABLE sessions ADD COLUMN confirmed_until ${integer}`,
    `ALTER TABLE challenges ADD COLUMN answer ${text}`,
    isPostgres
      ? COMMAND_LOGINS.replaceAll(/ text\b/g, ' text COLLATE "C"')
      : `${COMMAND_LOGINS.replaceAll(' bigint', ' integer')} STRICT`,
    'CREATE UNIQUE INDEX command_logins_user_code ON command_logins (user_code_hash) WHERE user_code_hash IS NOT NULL',
    'CREATE INDEX command_logins_expiry ON command_logins (expires_at)',
  ]
}
