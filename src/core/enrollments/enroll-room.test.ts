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
