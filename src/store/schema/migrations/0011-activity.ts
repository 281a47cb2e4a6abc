/**
 * How many entries the audit has, by time, backend and action (`tables/activity.ts`). A job fills it from the audit, also from
 * the entries that were there before. Compared as in 0001.
 */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  const integer = dialect === 'sqlite' ? 'integer' : 'bigint'
  return [
    `CREATE TABLE activity (
    span ${integer} NOT NULL,
    at ${integer} NOT NULL,
    backend ${text} NOT NULL,
    action ${text} NOT NULL,
    count ${integer} NOT NULL,
    PRIMARY KEY (span, at, backend, action)
  )${dialect === 'sqlite' ? ' STRICT, WITHOUT ROWID' : ''}`,
  ]
}
