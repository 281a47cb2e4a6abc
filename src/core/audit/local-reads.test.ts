import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { Problem } from '../../domain/problems.ts'

const ROUTE = { route: 'GET /v1/admin/agents' }

let test: TestCore
beforeEach(async () => {
  test = await testCore()
  test.freeze()
})
afterEach(() => test.close())

const record = (route = ROUTE) => test.core.localReads.record(LOCAL, route)
const facts = async () => (await test.audit('admin.local_access')).map((entry) => entry.facts)

/** Makes the store refuse every commit until the function that it returns is called. */
function breakStore(): () => void {
  const { commit } = test.core.store
  test.core.store.commit = () => Promise.reject(new Problem('store_unavailable'))
  return () => {
    test.core.store.commit = commit
  }
}

it('records the first read of each route, and counts the others of its minute', async () => {
  for (let n = 0; n < 3; n += 1) await record()
  await record({ route: 'GET /v1/admin/tokens' })
  expect(await facts()).toEqual([ROUTE, { route: 'GET /v1/admin/tokens' }])
  test.advance(60_000)
  await record()
  expect((await facts()).at(-1)).toEqual({ ...ROUTE, repeated: 2 })
})

it('refuses a read that it cannot record, and records the next', async () => {
  const restore = breakStore()
  await expect(record()).rejects.toMatchObject({ code: 'audit_unavailable' })
  await expect(record()).rejects.toMatchObject({ code: 'audit_unavailable' })
  restore()
  await record()
  expect(await facts()).toEqual([ROUTE])
})

it('keeps the count that it could not write, for the next flush or the next read', async () => {
  await record()
  await record()
  test.advance(60_000)
  const restore = breakStore()
  await test.core.localReads.flush(test.core.store.now())
  await expect(record()).rejects.toMatchObject({ code: 'audit_unavailable' })
  restore()
  await test.core.localReads.flush(test.core.store.now())
  expect((await facts()).at(-1)).toEqual({ ...ROUTE, repeated: 1 })
  expect(test.logged()).toContain('their number is kept')
})

it('starts a new minute when the clock was set back', async () => {
  await record()
  test.advance(-3_600_000)
  await record()
  expect(await facts()).toEqual([ROUTE, ROUTE])
})
