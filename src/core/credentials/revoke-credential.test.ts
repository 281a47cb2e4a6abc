import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import type { Change } from '../../store/engine/change.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { issueCredential } from './issue-credential.ts'
import { revokeCredential, revokeUndelivered } from './revoke-credential.ts'

let test: TestCore
let actor: Actor<AgentCaller>
beforeEach(async () => {
  test = await testCore()
  const { core } = test
  await createBackend(core, LOCAL, { type: 'jwt', name: 'tok', config: { audience: 'x' } }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['tok'] })
  actor = await test.actor(token)
})
afterEach(() => test.close())

it('expires, rather than revokes, a credential that has expired but was not swept yet', async () => {
  const { core } = test
  const { id, expiresAt } = await issueCredential(core, actor, { backend: 'tok', ttl: '1m' })
  test.advance(60_001)
  expect(await revokeCredential(core, actor, id)).toMatchObject({ revokedAt: expiresAt })
  expect(await core.store.credentials.find(id)).toMatchObject({ state: 'expired', endedAt: expiresAt })
  const exact = someCredential({ agentId: actor.caller.agentId, expiresAt, dueAt: expiresAt })
  await core.store.commit([core.store.credentials.insert(exact)])
  expect(await revokeCredential(core, actor, exact.id)).toMatchObject({ revokedAt: expiresAt })
  expect(await core.store.credentials.find(exact.id)).toMatchObject({
    state: 'revoking',
    endReason: 'expired',
    endedAt: expiresAt,
  })
  expect(await test.audit('credential.expired')).toHaveLength(2)
  expect(await test.audit('credential.revoked')).toEqual([])
})

it('issues another credential under the same Idempotency-Key when the first was not delivered', async () => {
  const { core } = test
  const issue = () => issueCredential(core, actor, { backend: 'tok', idempotencyKey: 'k' })
  const lost = await issue()
  await revokeUndelivered(core, actor, { ...lost, isClaimed: true })
  expect(await core.store.credentials.find(lost.id)).toMatchObject({ state: 'revoked' })
  const again = await issue()
  expect(again.id).not.toBe(lost.id)
  expect(again.secret).toBeTypeOf('string')
  expect(await core.store.credentials.find(again.id)).toMatchObject({ state: 'active' })
})

/** The end of a credential whose first request was not delivered, while a second request repeats it. */
async function takenBack(when: 'before' | 'while' | 'after'): Promise<Record<string, unknown>> {
  const { core } = test
  const issue = () => issueCredential(core, actor, { backend: 'tok', idempotencyKey: 'k' })
  const first = await issue()
  const takeBack = () => revokeUndelivered(core, actor, { ...first, isClaimed: true })
  const isRepetition = (change: Change) =>
    change.some((s) => s.op === 'insert' && s.table === 'audit' && s.row.action === 'credential.repeated')
  if (when === 'before') await takeBack()
  if (when === 'while') test.before(isRepetition, takeBack)
  const told = await issue()
  if (when === 'after') await takeBack()
  const state = (await core.store.credentials.find(told.id))?.state
  return { isSame: told.id === first.id, hasToken: told.secret !== undefined, state }
}

it.each([
  ['before', false],
  ['while', false],
  ['after', true],
] as const)('tells a repeated request a secret that stays valid (%s)', async (when, isSame) => {
  expect(await takenBack(when)).toEqual({ isSame, hasToken: true, state: 'active' })
})
