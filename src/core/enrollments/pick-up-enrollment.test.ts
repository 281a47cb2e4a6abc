import { afterEach, beforeEach, expect, it } from 'vitest'
import { ANYBODY, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { DAY_MS, MINUTE_MS } from '../../domain/limits.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { approveEnrollment } from './approve-enrollment.ts'
import { enroll } from './enroll.ts'
import { expireEnrollments } from './expire-enrollments.ts'
import { pickUpEnrollment } from './pick-up-enrollment.ts'

let test: TestCore
let me: ReturnType<typeof newEnrollee>
let id: string
beforeEach(async () => {
  test = await testCore()
  me = newEnrollee()
  id = (await enroll(test.core, ANYBODY, { name: 'bot', scopes: ['db:read'], public_key: me.publicKey })).id
})
afterEach(() => test.close())

const now = () => test.core.store.now()
const approve = () => approveEnrollment(test.core, LOCAL, id, {})
const poll = async (proof?: string) => {
  const sent = proof ?? (await me.prove(id, now()))
  const found = await pickUpEnrollment(test.core, ANYBODY, { id, proof: sent })
  return { ...found, answer: found.sealed === undefined ? undefined : await me.open(found.sealed, sent) }
}

it('repeats the answer for ten minutes after the first fetch, then erases it', async () => {
  expect(await poll()).toMatchObject({ status: 'pending', sealed: undefined })
  await approve()
  test.advance(DAY_MS / 2)
  const first = await poll()
  expect(first.answer).toMatchObject({
    scopes: ['db:read'],
    token: expect.stringMatching(/^ckr_[0-9a-f]{48}$/),
  })
  test.advance(10 * MINUTE_MS - 1_000)
  expect((await poll()).answer).toEqual(first.answer)
  await expireEnrollments(test.core, now())
  expect((await poll()).answer).toEqual(first.answer)
  test.advance(1_000)
  // Before and after the job has run.
  expect(await poll()).toMatchObject({ status: 'approved', sealed: undefined })
  await expireEnrollments(test.core, now())
  expect((await test.core.store.enrollments.find(id))?.sealedAnswer).toBeNull()
  expect(await poll()).toMatchObject({ status: 'approved', sealed: undefined })
  test.advance(DAY_MS)
  await expireEnrollments(test.core, now())
  expect((await test.actor(first.answer?.token ?? '')).caller.agentName).toBe('bot')
  expect((await test.audit('enrollment.collected')).map((one) => one.facts['again'])).toEqual([
    false,
    true,
    true,
  ])
})

it('accepts a proof once, whatever the result was', async () => {
  const proof = await me.prove(id, now())
  expect((await poll(proof)).status).toBe('pending')
  await approve()
  await expect(poll(proof)).rejects.toMatchObject({ code: 'unauthorized' })
  const again = await me.prove(id, now())
  const both = await Promise.allSettled([poll(again), poll(again)])
  expect(both.map((one) => one.status).sort()).toEqual(['fulfilled', 'rejected'])
})

it('answers two first fetches at once, and starts the ten minutes once', async () => {
  await approve()
  const [one, two] = await Promise.all([poll(), poll()])
  expect(one.answer).toEqual(two.answer)
  expect((await test.audit('enrollment.collected')).map((entry) => entry.facts['again']).sort()).toEqual([
    false,
    true,
  ])
})

it('deletes an agent that nobody collects within a day', async () => {
  await approve()
  const row = await test.core.store.enrollments.find(id)
  const { token } = JSON.parse(test.core.sealer.open('enrollments', id, 'answer', row?.sealedAnswer ?? ''))
  expect((await test.actor(token)).caller.agentName).toBe('bot')
  test.advance(DAY_MS)
  expect(await poll()).toMatchObject({ status: 'expired', sealed: undefined })
  expect(await expireEnrollments(test.core, now())).toBe(1)
  await expect(test.actor(token)).rejects.toThrow()
  expect(await test.core.store.enrollments.find(id)).toMatchObject({ status: 'expired', sealedAnswer: null })
  expect((await test.audit('agent.deleted'))[0]?.facts).toEqual({ reason: 'uncollected' })
  expect((await test.audit('enrollment.expired'))[0]?.facts).toMatchObject({ reason: 'uncollected' })
  expect(await expireEnrollments(test.core, now())).toBe(0)
})

it('keeps an agent that is collected just before its deletion', async () => {
  await approve()
  const until = now() + DAY_MS
  test.before(
    (change) => change.some((step) => step.op === 'run' && step.sql.includes('end_reason')),
    () => poll(),
  )
  await expireEnrollments(test.core, until)
  expect(await test.core.store.agents.findByName('bot')).toBeDefined()
  expect(await test.audit('agent.deleted')).toEqual([])
})

it('gives no answer for an agent that was deleted before it was collected', async () => {
  await approve()
  await deleteAgent(test.core, LOCAL, 'bot')
  expect(await poll()).toMatchObject({ status: 'expired', sealed: undefined })
  test.advance(DAY_MS)
  expect(await expireEnrollments(test.core, now())).toBe(1)
  expect(await test.core.store.enrollments.find(id)).toMatchObject({ status: 'expired', sealedAnswer: null })
  expect((await test.audit('agent.deleted')).length).toBe(1)
})

it('limits how often an enrollment is polled', async () => {
  test.freeze()
  const proofs = await Promise.all(Array.from({ length: 121 }, () => me.prove(id, now())))
  for (const proof of proofs.slice(0, 120)) await poll(proof)
  await expect(poll(proofs[120])).rejects.toMatchObject({ code: 'rate_limited' })
})
