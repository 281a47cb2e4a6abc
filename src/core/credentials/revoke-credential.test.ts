import { expect, it } from 'vitest'
import { LOCAL, ORIGIN, testCore } from '../../../test/support/core.ts'
import { credentialRow } from '../../../test/support/store.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { issueCredential } from './issue-credential.ts'
import { revokeCredential, revokeUndelivered } from './revoke-credential.ts'

it('what has run out and was not swept yet is expired, not revoked', async () => {
  const test = await testCore()
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false, ORIGIN)
  const { agent, token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['tok'] }, ORIGIN)
  const caller = await test.caller(token)
  const { id, expiresAt } = await issueCredential(core, caller, { backend: 'tok', ttl: '1m' }, ORIGIN)
  test.advance(60_001)
  expect(await revokeCredential(core, caller, id, ORIGIN)).toMatchObject({ revokedAt: expiresAt })
  expect(await core.store.credentials.find(id)).toMatchObject({ state: 'expired', ended_at: expiresAt })
  const exact = credentialRow({ agent_id: agent.id, expires_at: expiresAt, due_at: expiresAt })
  await core.store.commit([{ op: 'insert', table: 'credentials', row: exact }])
  expect(await revokeCredential(core, caller, exact.id, ORIGIN)).toMatchObject({ revokedAt: expiresAt })
  expect(await core.store.credentials.find(exact.id)).toMatchObject({
    state: 'revoking',
    end_reason: 'expired',
    ended_at: expiresAt,
  })
  expect(await test.audit('credential.expired')).toHaveLength(2)
  expect(await test.audit('credential.revoked')).toEqual([])
  await test.close()
})

it('whoever was not delivered a credential is issued another under the same Idempotency-Key', async () => {
  const test = await testCore()
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false, ORIGIN)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['tok'] }, ORIGIN)
  const caller = await test.caller(token)
  const issue = () => issueCredential(core, caller, { backend: 'tok', idempotencyKey: 'k' }, ORIGIN)
  const lost = await issue()
  await revokeUndelivered(core, caller, lost, ORIGIN)
  expect(await core.store.credentials.find(lost.id)).toMatchObject({ state: 'revoked' })
  const again = await issue()
  expect(again.id).not.toBe(lost.id)
  expect(again.token).toBeTypeOf('string')
  expect(await core.store.credentials.find(again.id)).toMatchObject({ state: 'active' })
  await test.close()
})
