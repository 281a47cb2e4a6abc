import { expect, test } from 'vitest'
import { codecs } from '../tables/codecs.ts'
import { codecOf } from './codec.ts'

interface Grant {
  readonly id: string
  readonly agentId: string
  readonly scopes: readonly string[]
  readonly createdAt: number
  readonly expiresAt: number | null
}

test('makes rows and objects of each other, with JSON, other names and nulls', () => {
  const key = {
    kid: 'one',
    publicJwk: { kty: 'RSA' },
    sealedPrivateKey: null,
    createdAt: 1,
    retiresAt: 2,
  }
  const row = codecs.issuer_keys.encode(key)
  expect(row).toEqual({
    kid: 'one',
    public_jwk: '{"kty":"RSA"}',
    private_key: null,
    created_at: 1,
    retires_at: 2,
  })
  expect(codecs.issuer_keys.decode(row)).toEqual(key)
  const entry = {
    id: 'a',
    at: 1,
    action: 'agent.created',
    outcome: 'ok',
    agentId: null,
    agentName: null,
    actor: 'local',
    backend: 'orders',
    credentialId: null,
    scopes: ['orders:read'],
    ttlMs: null,
    ipAddress: null,
    userAgent: null,
    authMethod: null,
    requestId: null,
    metadata: null,
    details: { a: 1 },
    runId: null,
  } as const
  const recorded = codecs.audit.encode(entry)
  expect(recorded).toMatchObject({
    agent_id: '',
    backend: 'orders',
    scopes: '["orders:read"]',
    metadata: null,
  })
  expect(codecs.audit.decode(recorded)).toEqual(entry)
})

test('exists only where every column has its field', () => {
  const good = codecOf<Grant>()('agent_grants', { json: ['scopes'] })
  expect(good.decode({ id: 'a', agent_id: 'b', scopes: '[]', created_at: 1, expires_at: null }).agentId).toBe(
    'b',
  )
  type With<T> = Omit<Grant, keyof T> & T
  const json = { json: ['scopes'] } as const
  const wrong = [
    // @ts-expect-error A field without a column.
    codecOf<With<{ more: string }>>()('agent_grants', json).encode,
    // @ts-expect-error A column without a field.
    codecOf<Omit<Grant, 'createdAt'>>()('agent_grants', json).encode,
    // @ts-expect-error A list in a column of text.
    codecOf<Grant>()('agent_grants', {}).encode,
    // @ts-expect-error A column that may be null, and a field that may not.
    codecOf<With<{ expiresAt: number }>>()('agent_grants', json).encode,
    // @ts-expect-error A field that may be null, and a column that may not.
    codecOf<With<{ id: string | null }>>()('agent_grants', json).encode,
    // @ts-expect-error Another type.
    codecOf<With<{ id: number }>>()('agent_grants', json).encode,
  ]
  expect(wrong).toHaveLength(6)
})
