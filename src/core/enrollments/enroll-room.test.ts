import { afterEach, describe, expect, it } from 'vitest'
import { anybodyFrom, LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { newEnrollee } from '../../../test/support/enrollee.ts'
import { createAgent } from '../agents/create-agent.ts'
import type { Settings } from '../context.ts'
import { enroll } from './enroll.ts'
import { requestScopes } from './request-scopes.ts'

let test: TestCore
afterEach(() => test.close())

async function start(settings: Partial<Settings>): Promise<void> {
  test = await testCore(settings)
}

const from = (name: string, ipAddress: string) =>
  enroll(test.core, anybodyFrom(ipAddress), { name, public_key: newEnrollee().publicKey })

describe('limits', () => {
  it('let one network leave a quarter of what may be pending, and leave the room of others alone', async () => {
    await start({ maxPendingEnrollments: 8 })
    const full = { code: 'rate_limited', retryAfterSeconds: 60 }
    for (const [first, second, third] of [
      ['192.0.2.1', '192.0.2.200', '192.0.2.7'],
      ['2001:db8::1', '2001:db8::ffff:1', '2001:db8:0:0:9::'],
    ]) {
      await from('a', first ?? '')
      await from('b', second ?? '')
      await expect(from('c', third ?? '')).rejects.toMatchObject(full)
    }
    await from('d', '192.0.3.1')
    for (let n = 1; n <= 3; n += 1) await from('e', `10.0.${n}.1`)
    await expect(from('f', '10.0.9.1')).rejects.toMatchObject(full)
    const { token } = await createAgent(test.core, LOCAL, { name: 'asking' })
    await requestScopes(test.core, await test.actor(token), { scopes: ['x'] })
  })

  it('count a /48 as one site, whichever of its networks somebody asks from', async () => {
    await start({ maxPendingEnrollments: 8 })
    await from('a', '2001:db8:1:1::1')
    await from('b', '2001:db8:1:2::1')
    await expect(from('c', '2001:db8:1:ffff::1')).rejects.toMatchObject({ code: 'rate_limited' })
    await from('d', '2001:db8:2::1')
  })

  it('let one site ask ten times as often as one network', async () => {
    await start({ enrollmentsPerMinute: 2, maxPendingEnrollments: 1_000 })
    test.freeze()
    for (let n = 0; n < 20; n += 1) await from(`a${n}`, `2001:db8:1:${n.toString(16)}::1`)
    await expect(from('b', '2001:db8:1:99::1')).rejects.toMatchObject({ code: 'rate_limited' })
    await from('c', '2001:db8:2::1')
  })

  it('bound the requests of agents for more scopes apart from the enrollments', async () => {
    await start({ maxPendingEnrollments: 1 })
    for (const name of ['one', 'two']) {
      const { token } = await createAgent(test.core, LOCAL, { name })
      const asking = requestScopes(test.core, await test.actor(token), { scopes: ['x'] })
      if (name === 'one') await asking
      else await expect(asking).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 60 })
    }
    expect((await from('new', '10.0.0.1')).status).toBe('pending')
  })
})
