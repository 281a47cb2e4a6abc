import { describe, expect, test } from 'vitest'
import {
  backendRow,
  DIALECTS,
  newAgent,
  newBody,
  newEntry,
  newSigningKey,
  someCredential,
  T0,
} from '../support/store.ts'
import { insert, useStore } from '../support/use-store.ts'

const by = { actor: 'local', ipAddress: '::1', userAgent: null, authMethod: 'local', requestId: 'req_1' }

describe.each(DIALECTS)('the tables on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done, living } = opened

  test('endAll ends what lives, each with its entry, and leaves the rest', async () => {
    const { store } = opened
    const { agent, backend } = await living()
    const own = { agentId: agent.id, backendUid: backend.uid }
    const exact = someCredential(own)
    const soft = someCredential({ ...own, revocation: 'expiry_only' })
    const pending = someCredential({ ...own, state: 'pending', revocation: 'none', sealedHandle: null })
    const ended = someCredential({
      ...own,
      state: 'revoked',
      endedAt: T0 - 5,
      endReason: 'revoked',
      dueAt: null,
    })
    // The sweeper records the expiry, even if its owner ends first.
    const expired = someCredential({ ...own, expiresAt: T0 + 77, dueAt: T0 + 77 })
    const foreign = someCredential()
    const rows = [exact, soft, pending, ended, expired, foreign]
    await done(...rows.map(store.credentials.insert))
    const now = T0 + 77
    await done(
      ...store.agents.end(agent.id, 'deleted', now),
      ...store.credentials.endAll({ agentId: agent.id }, 'agent_deleted', now, by),
    )
    const after = await store.credentials.findAll(rows.map((row) => row.id))
    const set = { endReason: 'agent_deleted', endedAt: now } as const
    expect(new Map(after.map((row) => [row.id, row]))).toEqual(
      new Map([
        [exact.id, { ...exact, ...set, state: 'revoking', dueAt: now }],
        [soft.id, { ...soft, ...set, state: 'revoked', dueAt: null, settledAt: now, sealedHandle: null }],
        [pending.id, { ...pending, ...set, state: 'revoking', dueAt: now }],
        [ended.id, ended],
        [expired.id, expired],
        [foreign.id, foreign],
      ]),
    )
    const entries = await store.audit.query({ agentId: agent.id }, 100)
    expect(new Set(entries.map((entry) => entry.credentialId))).toEqual(
      new Set([exact.id, soft.id, pending.id]),
    )
    const entry = entries.find((one) => one.credentialId === exact.id)
    expect(entry).toEqual({
      ...newEntry(),
      ...by,
      id: entry?.id,
      at: now,
      action: 'credential.revoked',
      agentId: agent.id,
      agentName: 'one',
      backend: 'db',
      credentialId: exact.id,
      scopes: ['read'],
      ttlMs: 600_000,
      details: { reason: 'agent_deleted' },
    })
    await done(...store.credentials.endAll({ backendUid: backend.uid }, 'backend_deleted', now + 1, by))
    expect(await store.audit.query({ agentId: agent.id }, 100)).toHaveLength(3)
  })

  test('a credential in progress when its process died is due, and one being retried keeps its time', async () => {
    const { store } = opened
    const backend = backendRow()
    const [active, claimed, retried] = [
      someCredential({ backendUid: backend.uid }),
      someCredential({ backendUid: backend.uid, state: 'revoking' }),
      someCredential({ backendUid: backend.uid, state: 'revoking', attempts: 2 }),
    ]
    const rows = [active, claimed, retried]
    await done(insert('backends', backend), ...rows.map(store.credentials.insert))
    await done(store.credentials.voidClaims(T0 + 5))
    const dueAt = async ({ id }: typeof active) => (await store.credentials.find(id))?.dueAt
    expect(await Promise.all(rows.map(dueAt))).toEqual([active.dueAt, T0 + 5, retried.dueAt])
    // A backend is idle when nothing is left to end at its upstream.
    await done(store.credentials.finishActive(active.id, 'revoked', 'revoked', T0))
    await done(store.credentials.settle(retried.id, 'revoked', T0))
    const idle = store.backends.requireIdle(backend.uid)
    expect(await commit([idle])).toMatchObject({ reason: 'rows' })
    await done(store.credentials.settle(claimed.id, 'revoked', T0), idle)
  })

  test('a credential moves only from the state it is in', async () => {
    const { store } = opened
    const row = someCredential({ state: 'pending', backendUid: 'be_moves' })
    await done(store.credentials.insert(row))
    const set = {
      expiresAt: T0 + 9,
      upstreamExpiresAt: null,
      secretHash: 'h',
      sealedHandle: 'x',
    }
    await done(store.credentials.activate(row.id, set))
    for (const step of [
      store.credentials.activate(row.id, set),
      store.credentials.beginRevoking(row.id, 'pending', 'interrupted', T0, T0),
      store.credentials.settle(row.id, 'revoked', T0),
    ]) {
      expect(await commit([step])).toMatchObject({ reason: 'rows' })
    }
    await done(store.credentials.fail(row.id, T0))
    expect(await store.credentials.find(row.id)).toMatchObject({ state: 'active' })
    await done(store.credentials.beginRevoking(row.id, 'active', 'revoked', T0 + 1, T0 + 1))
    expect(await commit([store.credentials.finishActive(row.id, 'expired', 'expired', T0)])).toMatchObject({
      reason: 'rows',
    })
    expect(await store.credentials.backlog('be_moves')).toEqual({
      open: 1,
      unsettled: 1,
      stuck: 0,
      earliest: T0 + 1,
    })
    await done(
      store.credentials.postpone(row.id, { attempts: 6, dueAt: T0 + 5, stuckAt: T0 + 2, failure: 'refused' }),
    )
    expect(await store.credentials.backlog('be_moves')).toEqual({
      open: 1,
      unsettled: 1,
      stuck: 1,
      earliest: T0 + 5,
    })
    await done(store.credentials.settle(row.id, 'revoked', T0 + 3))
    expect(await store.credentials.backlog('be_moves')).toEqual({
      open: 0,
      unsettled: 0,
      stuck: 0,
      earliest: null,
    })
    expect(await store.credentials.find(row.id)).toMatchObject({
      state: 'revoked',
      sealedHandle: null,
      stuckAt: null,
    })
  })

  test('takeDue gives the earliest first, as they are stored, no more than asked', async () => {
    const { store } = opened
    const rows = [5, 3, 9, 1, 7].map((at) => someCredential({ backendUid: 'be_due', dueAt: T0 + at }))
    await done(...rows.map(store.credentials.insert))
    const taken = await store.credentials.takeDue('be_due', T0 + 7, T0 + 30_000, 3)
    expect(taken.map((row) => (row.dueAt ?? 0) - T0)).toEqual([1, 3, 5])
    expect(taken[0]).toEqual(rows[3])
    expect(await store.credentials.countOpenOfBackend('be_due', 100)).toBe(5)
    expect(await store.credentials.countOpenOfBackend('be_due', 2)).toBe(2)
    // A claim lasts on PostgreSQL only: on SQLite the one process that is there knows what it has taken.
    const next = await store.credentials.takeDue('be_due', T0 + 7, T0 + 30_000, 3)
    expect(next.map((row) => (row.dueAt ?? 0) - T0)).toEqual(dialect === 'sqlite' ? [1, 3, 5] : [7])
  })

  test('finds in one query which backends have something due', async () => {
    const { store } = opened
    const rows = [
      someCredential({ backendUid: 'be_has', dueAt: T0 }),
      someCredential({ backendUid: 'be_later', dueAt: T0 + 1 }),
      someCredential({ backendUid: 'be_done', dueAt: null }),
    ]
    await done(...rows.map(store.credentials.insert))
    const all = ['be_has', 'be_later', 'be_done', 'be_"unknown"']
    expect(await store.credentials.dueBackends(all, T0)).toEqual(new Set(['be_has']))
    expect(await store.credentials.dueBackends(all, T0 + 1)).toEqual(new Set(['be_has', 'be_later']))
    expect(await store.credentials.dueBackends([], T0)).toEqual(new Set())
  })

  test('reads on among what is due, takes what was chosen there, and lets go of it', async () => {
    const { store } = opened
    const rows = [5, 3, 1].map((at) => someCredential({ backendUid: 'be_scan', dueAt: T0 + at }))
    await done(...rows.map(store.credentials.insert))
    const scanned = await store.credentials.scanDue('be_scan', T0 + 5, 1, 9)
    expect(scanned.map(({ id }) => id)).toEqual([rows[1]?.id, rows[0]?.id])
    expect(await store.credentials.scanDue('be_scan', T0 + 5, 0, 1)).toHaveLength(1)
    const ids = scanned.map(({ id }) => id)
    const take = () => store.credentials.takeThese(ids, T0 + 5, T0 + 30_000)
    expect(new Set(await take())).toEqual(new Set([rows[0], rows[1]]))
    expect(await take()).toHaveLength(dialect === 'sqlite' ? 2 : 0)
    await done(store.credentials.release(ids, T0 + 5))
    expect(await take()).toHaveLength(2)
  })

  test('expireAll ends those that were found, each with its entry, or none when one was ended meanwhile', async () => {
    const { store } = opened
    const own = { backendUid: 'be_out', revocation: 'none' as const, sealedHandle: null }
    const rows = [4, 2, 8, 6].map((at) => someCredential({ ...own, expiresAt: T0 + at, dueAt: T0 + at }))
    const revoking = someCredential({ ...own, state: 'revoking', endedAt: T0, dueAt: T0 })
    await done(...[...rows, revoking].map(store.credentials.insert))
    const [second, first, , third] = rows.map((row) => row.id)
    expect(await store.credentials.expired('be_out', T0 + 6, 2)).toEqual([first, second])
    const found = await store.credentials.expired('be_out', T0 + 6, 9)
    expect(found).toEqual([first, second, third])
    await done(store.credentials.finishActive(second ?? '', 'revoked', 'revoked', T0 + 7))
    const entries = () => store.audit.query({ backend: rows[0]?.backend, action: 'credential.expired' }, 99)
    const before = (await entries()).length
    expect(await commit(store.credentials.expireAll(found, T0 + 8, by))).toMatchObject({ reason: 'rows' })
    expect(await entries()).toHaveLength(before)
    expect(await store.credentials.find(first ?? '')).toEqual(rows[1])
    const left = await store.credentials.expired('be_out', T0 + 6, 9)
    expect(left).toEqual([first, third])
    await done(...store.credentials.expireAll(left, T0 + 9, by))
    expect(await store.credentials.find(first ?? '')).toEqual({
      ...rows[1],
      state: 'expired',
      endReason: 'expired',
      endedAt: T0 + 2,
      settledAt: T0 + 9,
      dueAt: null,
    })
    expect((await store.audit.query({ credentialId: first ?? '' }, 9))[0]).toMatchObject({
      at: T0 + 9,
      action: 'credential.expired',
      outcome: 'ok',
      agentId: rows[1]?.agentId,
      backend: rows[1]?.backend,
      details: null,
      ...by,
    })
    expect(await store.credentials.expired('be_out', T0 + 6, 9)).toEqual([])
  })

  test('finds agents while they live, and lists them with their last use', async () => {
    const { store } = opened
    const agent = newAgent({ policy: `p ${dialect}`, expiresAt: T0 + 5, scopes: ['a:b'], audiences: ['c'] })
    const key = newSigningKey(agent.id)
    await done(...store.agents.insert(agent, key), store.agents.recordUse(agent.id, { at: T0, from: null }))
    await done(store.agents.recordUse(agent.id, { at: T0 + 1, from: '192.0.2.7' }))
    expect(await store.agents.findByBearer(agent.bearerHash)).toEqual(agent)
    expect(await store.agents.findByClient(agent.clientId)).toEqual(agent)
    expect(await store.agents.findByName(agent.name.toUpperCase())).toEqual(agent)
    expect(await store.agents.signingKeyOf(agent.id)).toEqual(key)
    expect(await store.agents.lastUse(agent.id)).toEqual({ at: T0 + 1, from: '192.0.2.7' })
    expect(await store.agents.lastUse('ag_none')).toBeNull()
    expect((await store.agents.list(undefined, 1_000)).at(-1)).toEqual({
      ...agent,
      lastUse: { at: T0 + 1, from: '192.0.2.7' },
    })
    expect(await store.agents.countByPolicy(`p ${dialect}`)).toBe(1)
    expect(await store.agents.expired(T0 + 4, 9)).toEqual([])
    expect(await store.agents.expired(T0 + 5, 9)).toEqual([agent])
    await done(...store.agents.end(agent.id, 'expired', T0 + 5))
    expect(await store.agents.findByBearer(agent.bearerHash)).toBeUndefined()
    expect(await store.agents.countByPolicy(`p ${dialect}`)).toBe(0)
    expect(await store.agents.signingKeyOf(agent.id)).toMatchObject({
      sealedPrivateKey: null,
      endedAt: T0 + 5,
    })
  })

  test('keeps the extra grants of an agent until they are dropped', async () => {
    const { store } = opened
    const grant = { id: newBody(), agentId: 'ag_g', scopes: ['a:b'], createdAt: T0, expiresAt: T0 + 5 }
    await done(store.agents.insertGrant(grant))
    expect(await store.agents.grantsOf('ag_g')).toEqual([grant])
    expect(await store.agents.grantsOfAll(['ag_g', 'ag_none'])).toEqual([grant])
    expect(await store.agents.expiredGrants(T0 + 4, 9)).toEqual([])
    expect(await store.agents.expiredGrants(T0 + 5, 9)).toEqual([grant])
    await done(store.agents.dropGrant(grant.id))
    expect(await store.agents.grantsOf('ag_g')).toEqual([])
  })
})
