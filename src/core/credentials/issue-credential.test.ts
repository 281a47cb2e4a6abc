import { Type } from 'typebox'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import type { Kind } from '../../backends/kind.ts'
import { createAgent } from '../agents/create-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { changeBackend, createBackend } from '../backends/configure-backend.ts'
import { deleteBackend } from '../backends/delete-backend.ts'
import { issueCredential } from './issue-credential.ts'

const empty = Type.Object({}, { additionalProperties: false })
/** A kind that knows two scopes. */
const picky: Kind<typeof empty, typeof empty> = {
  type: 'picky',
  title: 'Picky',
  config: empty,
  params: empty,
  limits: {},
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: (scope) => ['repo:read', 'repo:write'].includes(scope),
    forms: [
      { form: '<repo>:read', gives: 'read it' },
      { form: '<repo>:write', gives: 'change it' },
    ],
    help: 'Of your own repositories.',
  },
  open: () => Promise.reject(new Error('nothing is issued')),
}

let test: TestCore
beforeAll(async () => {
  test = await testCore({}, [picky])
})
afterAll(() => test.close())

const UNTRIED = { check: false, force: false }
let count = 0
/** An agent and a backend of its own, and what issuing to it comes to while `race` goes first by a hair. */
async function overtaken(race: (name: string) => Promise<unknown>): Promise<string> {
  const { core } = test
  count += 1
  const name = `one-${count}`
  await createBackend(core, LOCAL, { type: 'jwt', name, config: { audience: 'x' } }, false)
  const { agent, token } = await createAgent(core, LOCAL, { name, scopes: [`${name}:read`] })
  const actor = await test.actor(token)
  test.before(
    (change) => change.some((step) => step.op === 'insert' && step.table === 'credentials'),
    () => race(name),
  )
  const outcome = await issueCredential(core, actor, { backend: name, ttl: '1h' }).then(
    () => 'issued',
    (error) => error.code,
  )
  expect(await core.store.credentials.countLiving(agent.id, 9)).toBe(0)
  return outcome
}

it.each<[string, (name: string) => Promise<unknown>, string]>([
  ['an agent that was deleted gets none', (name) => deleteAgent(test.core, LOCAL, name), 'unauthorized'],
  [
    'a backend that was deleted gives none',
    (name) => deleteBackend(test.core, LOCAL, name, false),
    'backend_not_found',
  ],
  [
    'a backend that became stricter gives none',
    (name) => changeBackend(test.core, LOCAL, name, { default_ttl: '1m', max_ttl: '1m' }, UNTRIED),
    'ttl_exceeded',
  ],
])('between decision and commit: %s', async (_, race, outcome) => {
  expect(await overtaken(race)).toBe(outcome)
})

it('names the forms of a scope when it refuses one', async () => {
  const { core } = test
  await createBackend(core, LOCAL, { type: 'picky', name: 'hub', config: {} }, false)
  const { token } = await createAgent(core, LOCAL, { name: 'picky', scopes: ['hub:*'] })
  const asked = issueCredential(core, await test.actor(token), { backend: 'hub', scopes: ['repo:admin'] })
  await expect(asked).rejects.toMatchObject({
    code: 'invalid_request',
    message:
      'A scope is not one of this backend, which takes <repo>:read, <repo>:write. Of your own repositories.',
  })
})
