import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCAL, ORIGIN, type TestCore, testCore } from '../../test/support/core.ts'
import { newEnrollee } from '../../test/support/enrollee.ts'
import { type CreatedAgent, createAgent } from './agents/create-agent.ts'
import { deleteAgent, deleteSelf } from './agents/end-agent.ts'
import { readSigningKey } from './agents/read-signing-key.ts'
import { signObject } from './agents/sign-object.ts'
import { changeBackend, createBackend } from './backends/configure-backend.ts'
import { deleteBackend } from './backends/delete-backend.ts'
import { reloadPlugins } from './backends/reload-plugins.ts'
import type { AgentCaller } from './caller.ts'
import { issueCredential } from './credentials/issue-credential.ts'
import { revokeCredential } from './credentials/revoke-credential.ts'
import { approveEnrollment } from './enrollments/approve-enrollment.ts'
import { enroll } from './enrollments/enroll.ts'
import { rejectEnrollment } from './enrollments/reject-enrollment.ts'
import { requestScopes } from './enrollments/request-scopes.ts'
import { type AuthenticatedClient, authenticateClient } from './oauth/authenticate-client.ts'
import { issueToken } from './oauth/issue-token.ts'
import { revokeToken } from './oauth/revoke-token.ts'
import { rotateKeys } from './oauth/rotate-keys.ts'

let test: TestCore
let made: CreatedAgent
let caller: AgentCaller
beforeEach(async () => {
  test = await testCore()
  made = await createAgent(test.core, LOCAL, { name: 'boss', scopes: ['admin:*', 'db'] }, ORIGIN)
  caller = await test.caller(made.token)
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

const issue = () => issueCredential(test.core, caller, { backend: 'db', ttl: '1h' }, ORIGIN)
const commitObject = [
  'tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  'author boss <boss@mayfly.test> 1800000000 +0000',
  'committer boss <boss@mayfly.test> 1800000000 +0000',
  '',
  'message',
  '',
].join('\n')

/** What else is committed for a caller. */
const MORE_ACTS: typeof ACTS = [
  [
    'issuing a credential',
    async () => {
      await createBackend(test.core, LOCAL, backend, false, ORIGIN)
      return issue
    },
  ],
  [
    'revoking a credential',
    async () => {
      await createBackend(test.core, LOCAL, backend, false, ORIGIN)
      const { id } = await issue()
      return () => revokeCredential(test.core, caller, id, ORIGIN)
    },
  ],
  ['requesting scopes', async () => () => requestScopes(test.core, caller, { scopes: ['x'] }, ORIGIN)],
  [
    'rejecting an enrollment',
    async () => {
      const id = await enrolled()
      return () => rejectEnrollment(test.core, caller, id, {}, ORIGIN)
    },
  ],
  [
    'deleting an agent',
    async () => {
      await createAgent(test.core, LOCAL, { name: 'bot' }, ORIGIN)
      return () => deleteAgent(test.core, caller, 'bot', ORIGIN)
    },
  ],
  ['deleting itself', async () => () => deleteSelf(test.core, caller, ORIGIN)],
  [
    'deleting a backend',
    async () => {
      await createBackend(test.core, LOCAL, backend, false, ORIGIN)
      return () => deleteBackend(test.core, caller, 'db', true, ORIGIN)
    },
  ],
  ['reloading plugins', async () => () => reloadPlugins(test.core, caller, ORIGIN)],
  [
    'signing a commit',
    async () => () =>
      signObject(test.core, caller, { data: Buffer.from(commitObject).toString('base64') }, ORIGIN),
  ],
]

describe('an access token that ends between admission and commit', () => {
  let who: AuthenticatedClient
  let token: string
  beforeEach(async () => {
    const client = { client_id: made.agent.clientId, client_secret: made.clientSecret }
    who = await authenticateClient(test.core, client, ORIGIN)
    token = (await issueToken(test.core, who, { grant_type: 'client_credentials' }, ORIGIN)).accessToken
    caller = await test.caller(token)
  })

  const ENDS: [string, () => Promise<unknown>, string][] = [
    ['is revoked', () => revokeToken(test.core, who, token, ORIGIN), 'token.revoked'],
    ['loses its key', () => rotateKeys(test.core, LOCAL, {}, ORIGIN), 'keys.rotated'],
  ]

  describe.each(ENDS)('because it %s', (_, end, action) => {
    it.each([...ACTS, ...MORE_ACTS])('achieves nothing any more by %s', async (__, prepare) => {
      const act = await prepare()
      const entries = (await test.audit()).length
      test.before(() => true, end)
      await expect(act()).rejects.toMatchObject({ code: 'unauthorized', invalidToken: true })
      await test.core.denials.flush(Number.POSITIVE_INFINITY)
      const later = (await test.audit()).slice(entries).map((entry) => entry.action)
      expect(later.filter((one) => one !== 'credential.issue_failed')).toEqual([action])
    })
  })

  it.each([...ACTS, ...MORE_ACTS])(
    'is needed for %s, which succeeds while it is valid',
    async (_, prepare) => {
      await (await prepare())()
    },
  )
})
