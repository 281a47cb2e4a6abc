/** The secrets of a backend that are being replaced: the proposed ones, and then the old ones. Compared as in 0001. */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  return [`ALTER TABLE backends ADD COLUMN rotation text${dialect === 'postgres' ? ' COLLATE "C"' : ''}`]
}
