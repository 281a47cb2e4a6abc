import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../test/support/core.ts'
import { newEnrollee } from '../../test/support/enrollee.ts'
import { createAgent } from './agents/create-agent.ts'
import { deleteAgent } from './agents/end-agent.ts'
import { readSigningKey } from './agents/read-signing-key.ts'
import { changeBackend, createBackend } from './backends/configure-backend.ts'
import type { AgentCaller } from './caller.ts'
import { approveEnrollment } from './enrollments/approve-enrollment.ts'
import { enroll } from './enrollments/enroll.ts'
import { requestScopes } from './enrollments/request-scopes.ts'
import { rotateKeys } from './oauth/rotate-keys.ts'

let test: TestCore
let caller: AgentCaller
beforeEach(async () => {
  test = await testCore()
  const { token } = await createAgent(test.core, LOCAL, { name: 'boss', scopes: ['admin:*', 'db'] }, ORIGIN)
  caller = await test.caller(token)
})
afterEach(() => test.close())

const backend = { type: 'jwt', name: 'db', config: { audience: 'x' } }
const enrolled = async () =>
  (await enroll(test.core, { name: 'bot', scopes: ['db'], public_key: newEnrollee().publicKey }, ORIGIN)).id
const asked = async () => {
  const { token } = await createAgent(test.core, LOCAL, { name: 'bot' }, ORIGIN)
  return (await requestScopes(test.core, await test.caller(token), { scopes: ['db'] }, ORIGIN)).id
}

/** What gives power away, or the key that proves whose work it is, with what it needs made before. */
const ACTS: [string, () => Promise<() => Promise<unknown>>][] = [
  ['creating an agent', async () => () => createAgent(test.core, caller, { name: 'successor' }, ORIGIN)],
  [
    'approving an enrollment',
    async () => {
      const id = await enrolled()
      return () => approveEnrollment(test.core, caller, id, {}, ORIGIN)
    },
  ],
  [
    'approving more scopes',
    async () => {
      const id = await asked()
      return () => approveEnrollment(test.core, caller, id, {}, ORIGIN)
    },
  ],
  ['creating a backend', async () => () => createBackend(test.core, caller, backend, false, ORIGIN)],
  [
    'changing a backend',
    async () => {
      await createBackend(test.core, LOCAL, backend, false, ORIGIN)
      return () =>
        changeBackend(
          test.core,
          caller,
          'db',
          { description: 'mine' },
          { check: false, force: false },
          ORIGIN,
        )
    },
  ],
  ['reading its private key', async () => () => readSigningKey(test.core, caller, ORIGIN, true)],
  ['rotating the keys', async () => () => rotateKeys(test.core, caller, {}, ORIGIN)],
]

describe('an agent that is deleted between its admission and the commit', () => {
  it.each(ACTS)('gives nothing away any more by %s', async (_, prepare) => {
    const act = await prepare()
    const entries = (await test.audit()).length
    test.before(
      () => true,
      () => deleteAgent(test.core, LOCAL, 'boss', ORIGIN),
    )
    await expect(act()).rejects.toMatchObject({ code: 'conflict' })
    expect((await test.audit()).slice(entries).map((entry) => entry.action)).toEqual(['agent.deleted'])
  })
})
