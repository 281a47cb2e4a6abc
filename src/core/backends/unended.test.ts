import { afterEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { scriptedKind } from '../../../test/support/scripted-kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createAgent } from '../agents/create-agent.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import { revokeCredential } from '../credentials/revoke-credential.ts'
import { createBackend } from './configure-backend.ts'
import { createUnendedCount } from './unended.ts'

let test: TestCore
afterEach(() => test.close())

it('counts few for each who asks, and many once for some time', async () => {
  const refuses = () => Promise.reject(new BackendError('denied', 'It said no.'))
  test = await testCore({}, [scriptedKind({ revoke: refuses })])
  const { core } = test
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const agent = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const actor = await test.actor(agent.token)
  const end = async () => {
    const { id } = await issueCredential(core, actor, { backend: 'db' })
    await revokeCredential(core, LOCAL, id, 'admin:tokens:write')
  }
  let clock = 0
  // Each look at it is a millisecond later: a count takes one.
  const now = () => {
    clock += 1
    return clock
  }
  const read = createUnendedCount(core, { mostEachTime: 1, now })
  const count = async () => [...(await read()).values()].map((one) => one.count)
  expect(await count()).toEqual([])
  await end()
  expect(await count()).toEqual([1])
  await end()
  expect(await count()).toEqual([2])
  await end()
  expect(await count()).toEqual([2])
  clock += 17
  expect(await count()).toEqual([2])
  expect(await count()).toEqual([3])
})
