/**
 * Who answers for an agent, from where it was last used, and why ending a credential failed last. Beside the columns, which
 * rewrite nothing, the lists of what lives and of what has not ended upstream get their indexes: of open credentials only, so
 * that settled ones cost nothing. Compared as in 0001.
 */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  return [
    `ALTER TABLE agents ADD COLUMN owner ${text}`,
    `ALTER TABLE agent_uses ADD COLUMN ip_address ${text}`,
    `ALTER TABLE credentials ADD COLUMN failure ${text}`,
    'CREATE INDEX credentials_open ON credentials (state, id) WHERE settled_at IS NULL',
    'CREATE INDEX credentials_open_backend ON credentials (backend, state, id) WHERE settled_at IS NULL',
  ]
}
