import { afterEach, beforeEach, expect, it } from 'vitest'
import { ANYBODY, LOCAL, type TestCore, testCore } from '../../test/support/core.ts'
import { newEnrollee } from '../../test/support/enrollee.ts'
import { createAgent } from '../core/agents/create-agent.ts'
import { deleteAgent } from '../core/agents/end-agent.ts'
import { enroll } from '../core/enrollments/enroll.ts'
import { expireEnrollments } from '../core/enrollments/expire-enrollments.ts'
import { SPANS } from '../domain/activity.ts'
import { lowestBodyAt } from '../domain/ids.ts'
import { DAY_MS, MINUTE_MS } from '../domain/limits.ts'
import { createPrune } from './prune.ts'

const KEPT_MS = 7 * DAY_MS
let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

const create = async (name: string) => (await createAgent(test.core, LOCAL, { name })).agent
const end = (name: string) => deleteAgent(test.core, LOCAL, name)
const ask = async (name: string) =>
  (await enroll(test.core, ANYBODY, { name, public_key: newEnrollee().publicKey })).id
const run = () => createPrune(test.core, KEPT_MS)(new AbortController().signal)
const find = (id: string) => test.core.store.enrollments.find(id)

it('deletes agents and enrollments that ended before the retention', async () => {
  const [old, living, late] = [await create('old'), await create('living'), await create('late')]
  const undecided = await ask('bot')
  test.core.lastUse.touch(old.id, { at: test.core.store.now(), from: null })
  await test.core.lastUse.flush()
  await end('old')
  test.advance(2 * DAY_MS)
  await expireEnrollments(test.core, test.core.store.now())
  await end('late')
  const waiting = await ask('other')
  test.advance(KEPT_MS - 1)
  expect(await run()).toBe(false)
  const { agents } = test.core.store
  expect(await Promise.all(['old', 'living', 'late'].map(agents.lastNamed))).toEqual([
    undefined,
    living.id,
    late.id,
  ])
  expect([await agents.signingKeyOf(old.id), await agents.lastUse(old.id)]).toEqual([undefined, null])
  expect(await agents.signingKeyOf(late.id)).toBeDefined()
  expect([(await find(undecided))?.status, (await find(waiting))?.status]).toEqual(['expired', 'pending'])
  test.advance(2)
  await run()
  expect(await agents.lastNamed('late')).toBeUndefined()
  expect([await find(undecided), (await find(waiting))?.status]).toEqual([undefined, 'pending'])
  expect(await agents.lastNamed('living')).toBe(living.id)
})

it('deletes the counts of a time once all of it is before the retention', async () => {
  const { activity, commit, now } = test.core.store
  const entry = { id: lowestBodyAt(now()), backend: 'db', action: 'credential.issued' }
  await commit(activity.count([entry], undefined, entry.id))
  const kept = async () => {
    const counts = SPANS.map(async (span) => {
      let rows = 0
      for await (const some of activity.rows({ span, from: 0, before: now() })) rows += some.length
      return rows
    })
    return Promise.all(counts)
  }
  test.advance(KEPT_MS - 1)
  await run()
  expect(await kept()).toEqual([1, 1, 1, 1])
  test.advance(MINUTE_MS + 1)
  expect(await run()).toBe(false)
  expect((await kept())[0]).toBe(0)
  expect((await kept())[3]).toBe(1)
  test.advance(DAY_MS)
  await run()
  expect(await kept()).toEqual([0, 0, 0, 0])
})
