import { afterEach, beforeEach, expect, test } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { SIGNATURES_PER_MINUTE } from '../../domain/limits.ts'
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

test('signs so many objects a minute for one agent, and hinders no other', async () => {
  world.freeze()
  for (let n = 0; n < SIGNATURES_PER_MINUTE; n += 1) {
    const rate = { count: SIGNATURES_PER_MINUTE, perMs: 60_000 }
    world.core.rates.take(`sign|${actor.caller.agentId}`, rate, world.core.store.now())
  }
  await expect(sign()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 })
  const { token } = await createAgent(world.core, LOCAL, { name: 'other' })
  // Refused for its name in the object, so it had its turn.
  await expect(signObject(world.core, await world.actor(token), { data })).rejects.toMatchObject({
    code: 'not_allowed',
  })
  world.advance(1_000)
  await sign()
})
