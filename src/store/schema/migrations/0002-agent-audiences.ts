/** The audiences that an agent may ask tokens for, beside the issuer and those of the server. Compared as in 0001. */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  return [`ALTER TABLE agents ADD COLUMN audiences text${dialect === 'postgres' ? ' COLLATE "C"' : ''}`]
}
