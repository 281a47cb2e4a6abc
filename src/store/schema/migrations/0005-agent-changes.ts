/**
 * A description, and the secrets before the last rotation, which are accepted for a while: their token is looked up as the
 * current one is. Compared as in 0001.
 */
export function statements(dialect: 'sqlite' | 'postgres'): string[] {
  const text = dialect === 'postgres' ? 'text COLLATE "C"' : 'text'
  const integer = dialect === 'sqlite' ? 'integer' : 'bigint'
  return [
    `ALTER TABLE agents ADD COLUMN description ${text}`,
    `ALTER TABLE agents ADD COLUMN rotation ${integer}`,
    `ALTER TABLE agents ADD COLUMN previous_bearer_hash ${text}`,
    `ALTER TABLE agents ADD COLUMN previous_secret_hash ${text}`,
    `ALTER TABLE agents ADD COLUMN previous_until ${integer}`,
    'CREATE UNIQUE INDEX agents_previous_bearer ON agents (previous_bearer_hash) WHERE previous_bearer_hash IS NOT NULL',
  ]
}
