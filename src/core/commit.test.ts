import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { anybodyFrom, LOCAL, ORIGIN, type TestCore, testCore } from '../../test/support/core.ts'
import { newEnrollee } from '../../test/support/enrollee.ts'
import { changeAgent } from './agents/change-agent.ts'
import { type CreatedAgent, createAgent } from './agents/create-agent.ts'
import { deleteAgent, deleteSelf } from './agents/end-agent.ts'
import { readSigningKey } from './agents/read-signing-key.ts'
import { rotateAgent } from './agents/rotate-agent.ts'
import { signObject } from './agents/sign-object.ts'
import { changeBackend, createBackend } from './backends/configure-backend.ts'
import { deleteBackend } from './backends/delete-backend.ts'
import { reloadPlugins } from './backends/plugins.ts'
import type { Actor, AgentCaller } from './caller.ts'
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
let actor: Actor<AgentCaller>
let count = 0
/** Of this case alone: the tests share one core. */
let [boss, bot, db] = ['', '', '']

beforeAll(async () => {
  test = await testCore()
})
afterAll(() => test.close())
beforeEach(async () => {
  count += 1
  ;[boss, bot, db] = [`boss-${count}`, `bot-${count}`, `db-${count}`]
  made = await createAgent(test.core, LOCAL, { name: boss, scopes: ['admin:*', db] })
  actor = await test.actor(made.token)
})

const createDb = (by: Actor) =>
  createBackend(test.core, by, { type: 'jwt', name: db, config: { audience: 'x' } }, false)
const enrolled = async () => {
  const command = { name: bot, scopes: [db], public_key: newEnrollee().publicKey }
  return (await enroll(test.core, anybodyFrom(`10.0.${count}.1`), command)).id
}
const asked = async () => {
  const { token } = await createAgent(test.core, LOCAL, { name: bot })
  return (await requestScopes(test.core, await test.actor(token), { scopes: [db] })).id
}

/** What gives power away, or the key that proves whose work it is, with what it needs made before. */
const ACTS: [string, () => Promise<() => Promise<unknown>>][] = [
  ['creating an agent', async () => () => createAgent(test.core, actor, { name: bot })],
  [
    'changing an agent',
    async () => {
      await createAgent(test.core, LOCAL, { name: bot })
      return () => changeAgent(test.core, actor, bot, { add_scopes: [db] })
    },
  ],
  [
    'rotating the secrets of an agent',
    async () => {
      await createAgent(test.core, LOCAL, { name: bot })
      return () => rotateAgent(test.core, actor, bot, {})
    },
  ],
  [
    'approving an enrollment',
    async () => {
      const id = await enrolled()
      return () => approveEnrollment(test.core, actor, id, {})
    },
  ],
  [
    'approving more scopes',
    async () => {
      const id = await asked()
      return () => approveEnrollment(test.core, actor, id, {})
    },
  ],
  ['creating a backend', async () => () => createDb(actor)],
  [
    'changing a backend',
    async () => {
      await createDb(LOCAL)
      return () =>
        changeBackend(test.core, actor, db, { description: 'mine' }, { check: false, force: false })
    },
  ],
  ['reading its private key', async () => () => readSigningKey(test.core, actor, true)],
  ['rotating the keys', async () => () => rotateKeys(test.core, actor, {})],
]

describe('an agent that is deleted between its admission and the commit', () => {
  it.each(ACTS)('gives nothing away any more by %s', async (_, prepare) => {
    const act = await prepare()
    const entries = (await test.audit()).length
    test.before(
      () => true,
      () => deleteAgent(test.core, LOCAL, boss),
    )
    await expect(act()).rejects.toMatchObject({ code: 'conflict' })
    expect((await test.audit()).slice(entries).map((entry) => entry.action)).toEqual(['agent.deleted'])
  })
})

const issue = () => issueCredential(test.core, actor, { backend: db, ttl: '1h' })
const sign = () => {
  const me = `${boss} <${boss}@mayfly.test> 1800000000 +0000`
  const tree = 'tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904'
  const data = Buffer.from(`${tree}\nauthor ${me}\ncommitter ${me}\n\nmessage\n`).toString('base64')
  return signObject(test.core, actor, { data })
}

/** What else is committed for an agent. */
const MORE_ACTS: typeof ACTS = [
  [
    'issuing a credential',
    async () => {
      await createDb(LOCAL)
      return issue
    },
  ],
  [
    'revoking a credential',
    async () => {
      await createDb(LOCAL)
      const { id } = await issue()
      return () => revokeCredential(test.core, actor, id)
    },
  ],
  ['requesting scopes', async () => () => requestScopes(test.core, actor, { scopes: ['x'] })],
  [
    'rejecting an enrollment',
    async () => {
      const id = await enrolled()
      return () => rejectEnrollment(test.core, actor, id, {})
    },
  ],
  [
    'deleting an agent',
    async () => {
      await createAgent(test.core, LOCAL, { name: bot })
      return () => deleteAgent(test.core, actor, bot)
    },
  ],
  ['deleting itself', async () => () => deleteSelf(test.core, actor)],
  [
    'deleting a backend',
    async () => {
      await createDb(LOCAL)
      return () => deleteBackend(test.core, actor, db, true)
    },
  ],
  ['reloading plugins', async () => () => reloadPlugins(test.core, actor)],
  ['signing a commit', async () => sign],
]

describe('an access token that ends between admission and commit', () => {
  let who: AuthenticatedClient
  let token: string
  beforeEach(async () => {
    const client = { client_id: made.agent.clientId, client_secret: made.clientSecret }
    who = await authenticateClient(test.core, client, ORIGIN)
    token = (await issueToken(test.core, who, { grant_type: 'client_credentials' })).accessToken
    actor = await test.actor(token)
  })

  const ENDS: [string, () => Promise<unknown>, string][] = [
    ['is revoked', () => revokeToken(test.core, who, token), 'token.revoked'],
    ['loses its key', () => rotateKeys(test.core, LOCAL, {}), 'keys.rotated'],
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
