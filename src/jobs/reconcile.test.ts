import { afterEach, beforeEach, expect, it } from 'vitest'
import { newCredentialId } from '../../test/contract/open-kind.ts'
import { LOCAL, type TestCore, testCore } from '../../test/support/core.ts'
import { scriptedKind } from '../../test/support/scripted-kind.ts'
import { someCredential } from '../../test/support/store.ts'
import { createAgent } from '../core/agents/create-agent.ts'
import { createBackend } from '../core/backends/configure-backend.ts'
import { issueCredential } from '../core/credentials/issue-credential.ts'
import { BackendError } from '../domain/backend-error.ts'
import { DAY_MS, HOUR_MS } from '../domain/limits.ts'
import { createReconcile } from './reconcile.ts'
import { createSweeper } from './sweep.ts'

const NOW = new AbortController().signal
let test: TestCore
let core: TestCore['core']
let uid: string
let accounts: Set<string>
let lists: number
let isAway: boolean
/** Refuses to end it. */
let stubborn: string | undefined
/** The upstream does the work of an issue that it did not answer. */
let workLate: () => void

beforeEach(async () => {
  accounts = new Set()
  lists = 0
  isAway = false
  stubborn = undefined
  const kind = scriptedKind({
    issue: async ({ credentialId }) => {
      workLate = () => accounts.add(credentialId)
      throw new BackendError('timeout', 'No answer.')
    },
    revoke: async ({ id }) => {
      if (id === stubborn) throw new BackendError('denied', 'No.')
      accounts.delete(String(id))
    },
    list: async () => {
      lists += 1
      if (isAway) throw new BackendError('unavailable', 'Away.')
      return { items: [...accounts].map((id) => ({ credentialId: id, handle: { id } })) }
    },
  })
  test = await testCore({}, [kind])
  core = test.core
  test.freeze()
  uid = (await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)).uid
})
afterEach(() => test.close())

async function sweep(): Promise<void> {
  const sweeper = createSweeper(core)
  await sweeper.sweep(NOW)
  await sweeper.idle()
}

/** Nodes that have seen the backend; its first run is due. */
async function nodes(count: number) {
  const all = Array.from({ length: count }, () => createReconcile(core))
  for (const run of all) await run(NOW)
  test.advance(DAY_MS)
  return all
}

async function addAccount(set: Parameters<typeof someCredential>[0]): Promise<string> {
  const id = newCredentialId()
  accounts.add(id)
  await core.store.commit([core.store.credentials.insert(someCredential({ backendUid: uid, id, ...set }))])
  return id
}
const settled = (at = core.store.now() - 1) =>
  ({ state: 'revoked', endedAt: at, settledAt: at, dueAt: null }) as const

it('ends within a day the account of an issue that its upstream does after the last look', async () => {
  const { agent, token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['db'] })
  const [run] = await nodes(1)
  const actor = await test.actor(token)
  await expect(issueCredential(core, actor, { backend: 'db' })).rejects.toMatchObject({
    code: 'backend_timeout',
  })
  test.advance(3 * core.settings.upstreamTimeoutMs)
  await sweep()
  const [{ credentialId } = { credentialId: '' }] = await test.audit('credential.settled')
  workLate()
  expect(accounts).toEqual(new Set([credentialId]))
  test.advance(1)
  await sweep()
  expect(accounts.size).toBe(1)
  await run?.(NOW)
  expect(accounts.size).toBe(0)
  const entries = (await test.audit('credential.revoked')).filter(
    ({ facts }) => facts.reason === 'found_upstream',
  )
  expect(entries).toMatchObject([{ actor: 'system', agentId: agent.id, backend: 'db', credentialId }])
})

it('leaves accounts that the store does not know, and those of credentials that are not settled', async () => {
  const foreign = newCredentialId()
  accounts.add(foreign)
  const kept = [
    foreign,
    await addAccount({ state: 'active' }),
    await addAccount({ state: 'pending' }),
    await addAccount({ state: 'revoking' }),
  ]
  const gone = await addAccount({ backendUid: 'be_other', ...settled() })
  expect(accounts).toContain(gone)
  const [run] = await nodes(1)
  await run?.(NOW)
  expect(accounts).toEqual(new Set(kept))
})

it('lists a backend once a day, whatever the number of nodes', async () => {
  const all = await nodes(3)
  expect(lists).toBe(0)
  for (let hour = 0; hour < 48; hour += 1) {
    await Promise.all(all.map((run) => run(NOW)))
    test.advance(HOUR_MS)
  }
  expect(lists).toBeGreaterThanOrEqual(2)
  expect(lists).toBeLessThanOrEqual(3)
})

it('tries again after an hour where the upstream is away', async () => {
  await addAccount(settled(core.store.now() + DAY_MS - 1))
  const [run] = await nodes(1)
  isAway = true
  await run?.(NOW)
  await run?.(NOW)
  expect([lists, accounts.size]).toEqual([1, 1])
  isAway = false
  test.advance(HOUR_MS)
  await run?.(NOW)
  expect([lists, accounts.size]).toEqual([2, 0])
})

it('gives up after a week what the upstream does not end', async () => {
  stubborn = await addAccount(settled())
  const [run] = await nodes(1)
  for (let day = 0; day < 12; day += 1) {
    await run?.(NOW)
    test.advance(DAY_MS)
  }
  expect(lists).toBe(12)
  const failures = await test.audit('credential.revoke_failed')
  expect(failures.length).toBeGreaterThanOrEqual(6)
  expect(failures.length).toBeLessThanOrEqual(7)
})
