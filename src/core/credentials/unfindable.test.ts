import { Type } from 'typebox'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import type { Kind } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { createSweeper } from '../../jobs/sweep.ts'
import { createAgent } from '../agents/create-agent.ts'
import { createBackend } from '../backends/configure-backend.ts'
import { issueCredential } from './issue-credential.ts'

const empty = Type.Object({}, { additionalProperties: false })

/** A kind whose credentials only the reply names, and whose replies are lost. */
const nameless: Kind<typeof empty, typeof empty> = {
  type: 'nameless',
  title: 'Nameless',
  config: empty,
  params: empty,
  limits: {},
  revocation: 'exact',
  recovery: 'none',
  upstream: true,
  scopes: { valid: isScope, forms: [], help: 'Any scope.' },
  open: async () => ({
    check: async () => [],
    issue: () => Promise.reject(new BackendError('unavailable', 'The connection broke.')),
    revoke: async () => {},
    recover: () => undefined,
    async [Symbol.asyncDispose]() {},
  }),
}

let test: TestCore
beforeEach(async () => {
  test = await testCore({}, [nameless])
  await createBackend(test.core, LOCAL, { type: 'nameless', name: 'odd', config: {} }, false)
})
afterEach(() => test.close())

async function issue() {
  const { token } = await createAgent(test.core, LOCAL, { name: 'one', scopes: ['odd:*'] })
  return issueCredential(test.core, await test.actor(token), { backend: 'odd' })
}

async function sweepLater() {
  test.advance(2 * test.core.settings.upstreamTimeoutMs + 1)
  const sweeper = createSweeper(test.core)
  await sweeper.sweep(new AbortController().signal)
  await sweeper.idle()
}

const RECOVER = expect.objectContaining({ recover: 'none' })

it('says of an issue whose answer was lost that nobody can find what it left', async () => {
  await expect(issue()).rejects.toMatchObject({ code: 'backend_unavailable' })
  await sweepLater()
  expect((await test.audit('credential.issue_failed')).map(({ details }) => details)).toEqual([RECOVER])
  expect((await test.audit('credential.settled')).map(({ details }) => details)).toEqual([RECOVER])
})

it('says so of an issue that a crash interrupted', async () => {
  const { credentials } = test.core.store
  await expect(issue()).rejects.toThrow()
  const [{ credentialId } = { credentialId: null }] = await test.audit('credential.requested')
  const row = await credentials.find(credentialId ?? '')
  if (row === undefined) throw new Error('gone')
  const pending = { ...row, id: test.core.ids.id('credential'), state: 'pending' as const, endReason: null }
  await test.core.store.commit([credentials.insert({ ...pending, endedAt: null })])
  await sweepLater()
  const ended = await test.audit('credential.revoked')
  expect(ended.map(({ details }) => details)).toEqual([{ reason: 'interrupted', recover: 'none' }])
})
