import { afterAll, beforeAll, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../test/support/core.ts'
import { createAgent } from './agents/create-agent.ts'
import { inTurn } from './turns.ts'

let test: TestCore
beforeAll(async () => {
  test = await testCore()
})
afterAll(() => test.close())

const callerOf = async (name: string) =>
  (await test.actor((await createAgent(test.core, LOCAL, { name })).token)).caller

it('gives the long reads of one agent a turn of the event loop each, and lets those of others run between', async () => {
  const [busy, other] = [await callerOf('busy'), await callerOf('other')]
  const order: string[] = []
  const read = (caller: typeof busy, what: string) =>
    inTurn(test.core, caller, async () => {
      for (const until = performance.now() + 2; performance.now() < until; );
      order.push(what)
    })
  const all = ['1', '2', '3'].map((what) => read(busy, what))
  const between = new Promise<void>((resolve) =>
    setImmediate(() => {
      order.push('turn')
      resolve()
    }),
  )
  all.push(read(other, 'other'))
  await Promise.all([...all, between])
  expect(order.indexOf('other')).toBeLessThan(order.indexOf('2'))
  expect(order.indexOf('turn')).toBeLessThan(order.indexOf('3'))
  expect(order.filter((what) => /\d/.test(what))).toEqual(['1', '2', '3'])
})

it('goes on after a read that failed, and leaves the local host alone', async () => {
  const caller = await callerOf('failing')
  const failed = inTurn(test.core, caller, () => Promise.reject(new Error('gone')))
  const next = inTurn(test.core, caller, async () => 'next')
  await expect(failed).rejects.toThrow('gone')
  expect(await next).toBe('next')
  expect(await inTurn(test.core, LOCAL.caller, async () => 'local')).toBe('local')
})
