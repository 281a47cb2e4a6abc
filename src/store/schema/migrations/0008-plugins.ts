/** Kinds from outside: which bytes an administrator added, and their description of themselves. Compared as in 0001. */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  const integer = dialect === 'sqlite' ? 'integer' : 'bigint'
  return [
    `CREATE TABLE plugins (
    name ${text} NOT NULL,
    version ${text} NOT NULL,
    protocol ${text} NOT NULL,
    runtime ${text} NOT NULL,
    sha256 ${text} NOT NULL,
    bytes ${integer} NOT NULL,
    origin ${text} NOT NULL,
    description ${text} NOT NULL,
    added_at ${integer} NOT NULL,
    PRIMARY KEY (name)
  )${dialect === 'sqlite' ? ' STRICT' : ''}`,
  ]
}
