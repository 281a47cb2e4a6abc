import { afterEach, beforeEach, expect, test } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { StoreError } from '../../store/errors.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { createAgent } from './create-agent.ts'
import { deleteAgent } from './end-agent.ts'
import { signObject } from './sign-object.ts'

let world: TestCore
let actor: Actor<AgentCaller>
let data: string
beforeEach(async () => {
  world = await testCore()
  const { token, agent } = await createAgent(world.core, LOCAL, { name: 'bot' })
  actor = await world.actor(token)
  const me = `bot <${agent.signingEmail}> 1 +0000`
  data = Buffer.from(`tree ${'a'.repeat(40)}\nauthor ${me}\ncommitter ${me}\n\nm\n`).toString('base64')
})
afterEach(() => world.close())

const sign = () => signObject(world.core, actor, { data })
const isUse = (change: readonly { op: string }[]) =>
  change.some((step) => JSON.stringify(step).includes('signing_key.used'))

test('gives no signature and leaves no entry when the agent is deleted meanwhile', async () => {
  world.before(isUse, () => deleteAgent(world.core, LOCAL, 'bot'))
  await expect(sign()).rejects.toMatchObject({ code: 'unauthorized' })
  expect(await world.audit('signing_key.used')).toEqual([])
})

test('signs although the agent is changed meanwhile', async () => {
  world.before(isUse, () =>
    world.core.store.commit([
      {
        op: 'run',
        sql: 'update agents set version = version + 1 where id = ?',
        params: [actor.caller.agentId],
        rows: 1,
      },
    ]),
  )
  expect((await sign()).signature).toContain('BEGIN PGP SIGNATURE')
  expect(await world.audit('signing_key.used')).toHaveLength(1)
})

test('gives no signature that cannot be recorded', async () => {
  const store = {
    ...world.core.store,
    commit: () => Promise.reject(new StoreError('the disk is full')),
  }
  await expect(signObject({ ...world.core, store }, actor, { data })).rejects.toMatchObject({
    code: 'audit_unavailable',
  })
})

test('makes no signature older than its key when the clock is set back', async () => {
  world.freeze()
  const key = await world.core.store.agents.signingKeyOf(actor.caller.agentId)
  world.advance(-3_600_000)
  const { createdAt } = await sign()
  expect(createdAt).toBeGreaterThanOrEqual(Math.floor(Number(key?.createdAt) / 1_000) * 1_000 - 60_000)
})
