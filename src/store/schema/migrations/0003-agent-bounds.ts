/** The bounds of the policy that an agent came under, as JSON. Null: none, or recorded by an earlier build. */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  return [`ALTER TABLE agents ADD COLUMN bounds text${dialect === 'postgres' ? ' COLLATE "C"' : ''}`]
}
