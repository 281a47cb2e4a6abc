import Type from 'typebox'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { newCredentialId } from '../../../test/contract/open-kind.ts'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { someCredential } from '../../../test/support/store.ts'
import { type Backend, type Kind, upstreamField } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { createBackend } from './configure-backend.ts'
import { reconcileBackend } from './reconcile-backend.ts'

const PAGE = 3
/** In the order of their names; those of `refused` cannot be ended. */
let accounts: string[]
let refused: Set<string>
let onList: () => Promise<void>
let revoked: string[]
let onRevoke: () => void

const fake = {
  type: 'fake',
  title: 'Fake',
  config: Type.Object({ host: Type.String(upstreamField({})) }, { additionalProperties: false }),
  params: Type.Object({}),
  limits: {},
  revocation: 'exact',
  upstream: true,
  scopes: { valid: () => true, forms: [], help: '' },
  open: async ({ host }: { host: string }) => {
    const backend = {
      check: async () => [],
      revoke: async ({ id }: { id: string }) => {
        onRevoke()
        if (refused.has(id)) throw new BackendError('denied', 'No.', { detail: 'FATAL: hunter2' })
        revoked.push(id)
        accounts = accounts.filter((one) => one !== id)
      },
      recover: (id: string) => ({ id }),
      list: async (after = '') => {
        const page = accounts.filter((id) => id > after).slice(0, PAGE)
        await onList()
        const items = page.map((id) => ({ credentialId: id, handle: { id }, expiresAt: 1_800_000_000_000 }))
        return { items, ...(page.length === PAGE ? { next: page.at(-1) } : {}) }
      },
      [Symbol.asyncDispose]: async () => undefined,
    }
    return (host === 'unlisted' ? { ...backend, list: undefined } : backend) as unknown as Backend
  },
} as unknown as Kind

let world: TestCore
let core: TestCore['core']
let uid: string
beforeEach(async () => {
  world = await testCore({}, [fake])
  core = world.core
  accounts = Array.from({ length: 8 }, () => newCredentialId()).sort()
  refused = new Set()
  revoked = []
  onList = async () => undefined
  onRevoke = () => undefined
  uid = (await add('db', 'a')).uid
})
afterEach(() => world.close())

const add = (name: string, host: string) =>
  createBackend(core, LOCAL, { type: 'fake', name, config: { host } }, false)
const look = (command = {}) => reconcileBackend(core, LOCAL, 'db', command)
const found = async (command = {}) => (await look(command)).unowned.map(({ credentialId }) => credentialId)
const own = async (id = '', set: Parameters<typeof someCredential>[0] = {}) =>
  core.store.commit([core.store.credentials.insert(someCredential({ backendUid: uid, id, ...set }))])

it('finds accounts without a record, and ends nothing unless told to', async () => {
  await own(accounts[0], { state: 'active' })
  await own(accounts[1], { state: 'pending' })
  await own(accounts[2], { state: 'revoking' })
  // Of another backend at the same upstream.
  await own(accounts[3], { backendUid: 'be_other' })
  // It should be gone.
  await own(accounts[4], { state: 'revoked', endedAt: 1, settledAt: 1, dueAt: null })
  const reply = await look()
  expect(reply).toMatchObject({ name: 'db', seen: 8, nextCursor: undefined })
  expect(reply.unowned).toEqual(
    accounts
      .slice(4)
      .map((credentialId) => ({ credentialId, expiresAt: 1_800_000_000_000, outcome: 'left' })),
  )
  expect(revoked).toEqual([])
  expect(await world.audit('backend.reconciled')).toMatchObject([
    { actor: 'local', backend: 'db', facts: { seen: 8, unowned: 4, revoke: false } },
  ])
})

it('spares what is issued and what is settled while it looks', async () => {
  const [issued, settled, ...rest] = accounts
  onList = async () => {
    onList = async () => undefined
    await own(issued, { state: 'pending' })
    const now = core.store.now()
    await own(settled, { state: 'revoked', endedAt: now, settledAt: now, dueAt: null })
  }
  expect(await found({ revoke: true })).toEqual(rest)
})

it('ends what it finds, with an entry each, and tells what the upstream refused', async () => {
  const [mine, stubborn, ...rest] = accounts
  await own(mine)
  refused.add(stubborn ?? '')
  const { unowned, nextCursor } = await look({ revoke: true })
  expect(nextCursor).toBeUndefined()
  expect(unowned.filter(({ outcome }) => outcome === 'failed')).toMatchObject([{ credentialId: stubborn }])
  expect(accounts).toEqual([mine, stubborn])
  const entries = await world.audit('credential.revoked')
  expect(entries.map(({ credentialId }) => credentialId).sort()).toEqual([stubborn, ...rest].sort())
  expect(entries[0]).toMatchObject({
    actor: 'local',
    agentId: null,
    backend: 'db',
    facts: { reason: 'no_record' },
  })
  expect(await world.audit('credential.revoke_failed')).toMatchObject([
    { credentialId: stubborn, facts: { reason: 'no_record', code: 'backend_error' } },
  ])
  expect(world.logged()).toContain('FATAL: hunter2')
})

it('has the entry of an account before it ends it, so that a crash leaves none without', async () => {
  const before: Promise<number>[] = []
  // As many as there are, at every moment at which the upstream loses an account.
  onRevoke = () => void before.push(world.audit('credential.revoked').then(({ length }) => length))
  await look({ revoke: true })
  const counts = await Promise.all(before)
  expect(counts).toHaveLength(8)
  for (const [ended, count] of counts.entries()) expect(count).toBeGreaterThan(ended)
})

it('goes on where the last reply has stopped, and counts each account once', async () => {
  world.freeze()
  const all: string[] = []
  let seen = 0
  refused.add(accounts[1] ?? '')
  // Each page takes as long as one reply may; after two accounts no time is left.
  onList = async () => world.advance(6_000)
  onRevoke = () => world.advance(4_000)
  const expected = [...accounts]
  for (let cursor: string | undefined; ; ) {
    const reply = await look({ revoke: true, ...(cursor === undefined ? {} : { cursor }) })
    seen += reply.seen
    all.push(...reply.unowned.map(({ credentialId }) => credentialId))
    cursor = reply.nextCursor
    if (cursor === undefined) break
  }
  expect([...new Set(all)].sort()).toEqual(expected)
  expect([accounts, seen]).toEqual([[expected[1]], 8])
})

it('stops at an outage, and refuses what it cannot do', async () => {
  onRevoke = () => {
    throw new BackendError('unavailable', 'Away.')
  }
  await expect(look({ revoke: true })).rejects.toMatchObject({ code: 'backend_unavailable' })
  await add('mute', 'unlisted')
  await expect(reconcileBackend(core, LOCAL, 'mute', {})).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/cannot be reconciled/),
  })
  await expect(look({ cursor: 'http://127.0.0.1/' })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(reconcileBackend(core, LOCAL, 'none', {})).rejects.toMatchObject({
    code: 'backend_not_found',
  })
})
