/**
 * How many entries the audit has, by time, backend and action (`tables/activity.ts`). A job fills it from the audit, also from
 * the entries that were there before. Compared as in 0001.
 *
 * SQLite reads each row for a column that only the condition of a partial index has, even though the index implies it. With the
 * column in the index, the living credentials of all agents are counted without their rows.
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
    ...(dialect === 'sqlite'
      ? [
          'DROP INDEX credentials_living',
          'CREATE INDEX credentials_living ON credentials (agent_id, id, ended_at) WHERE ended_at IS NULL',
        ]
      : []),
  ]
}
