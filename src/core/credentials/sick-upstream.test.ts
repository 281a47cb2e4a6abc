import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { BackendError, type Fault } from '../../backends/kind.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import type { Actor, AgentCaller } from '../caller.ts'
import { issueCredential } from './issue-credential.ts'

let test: TestCore
afterEach(() => test.close())

async function world(script: Script) {
  test = await testCore({}, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const actor: Actor<AgentCaller> = await test.actor(token)
  const issue = () =>
    issueCredential(core, actor, { backend: 'db' }).then(
      () => 'issued',
      (error: { code: string; retryAfterSeconds?: number }) =>
        `${error.code} ${error.retryAfterSeconds ?? ''}`.trim(),
    )
  return { core, actor, issue }
}

const fail = (fault: Fault) => Promise.reject(new BackendError(fault, 'It said no.'))

describe('an upstream that restarts under 40 calls at once', () => {
  it('is asked again after one short pause, whatever ended with it', async () => {
    const away = Promise.withResolvers<void>()
    let under = 0
    let isBack = false
    const { issue } = await world({
      issue: async () => {
        under += 1
        if (isBack) return undefined
        await away.promise
        return fail('unavailable')
      },
    })
    const calls = Array.from({ length: 40 }, issue)
    await expect.poll(() => under).toBe(40)
    away.resolve()
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['backend_unavailable 5']))
    isBack = true
    expect(await issue()).toBe('backend_unavailable 1')
    test.advance(1_000)
    expect(await issue()).toBe('issued')
    expect(new Set(await Promise.all(Array.from({ length: 40 }, issue)))).toEqual(new Set(['issued']))
  })
})
