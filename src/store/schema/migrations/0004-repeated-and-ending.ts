/**
 * When a repetition of the request was told the secret, which the first request may then not take back; and since when,
 * and by whom, a backend is being deleted. Compared as in 0001.
 */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const integer = dialect === 'sqlite' ? 'integer' : 'bigint'
  return [
    `ALTER TABLE idempotency ADD COLUMN repeated_at ${integer}`,
    `ALTER TABLE backends ADD COLUMN ending text${dialect === 'postgres' ? ' COLLATE "C"' : ''}`,
  ]
}
