import { describe, expect, test } from 'vitest'
import type { Engine } from '../../src/store/engine/engine.ts'
import { createBackends } from '../../src/store/tables/backends.ts'
import { type OpenOf, openReads } from '../../src/store/tables/owned-credentials.ts'
import { backendRow, DIALECTS, newBody, someCredential, T0 } from '../support/store.ts'
import { insert, useStore } from '../support/use-store.ts'

describe.each(DIALECTS)('open credentials on %s', (dialect) => {
  const opened = useStore(dialect)
  const { done } = opened
  const settled = { state: 'revoked', endedAt: T0, endReason: 'revoked', settledAt: T0, dueAt: null } as const
  const ended = { state: 'revoking', endedAt: T0, endReason: 'revoked' } as const

  test('are listed newest first by state, agent and backend, page by page', async () => {
    const { store } = opened
    const [agentId, other] = [`ag_${newBody()}`, `ag_${newBody()}`]
    const rows = [
      someCredential({ agentId, backend: 'orders' }),
      someCredential({ agentId, backend: 'orders', ...ended }),
      someCredential({ agentId: other, backend: 'orders' }),
      someCredential({ agentId, backend: 'stock' }),
      someCredential({ agentId, backend: 'stock', ...settled }),
      someCredential({ agentId: other, backend: 'stock', ...ended }),
    ]
    await done(...rows.map(store.credentials.insert))
    const list = async (of: OpenOf, cursor?: string, limit = 9) =>
      (await store.credentials.listOpen(of, cursor, limit)).map(({ id }) =>
        rows.findIndex((row) => row.id === id),
      )
    expect(await list({ state: 'active' })).toEqual([3, 2, 0])
    expect(await list({ state: 'active' }, rows[3]?.id, 1)).toEqual([2])
    expect(await list({ state: 'active', agentId })).toEqual([3, 0])
    expect(await list({ state: 'active', backend: 'orders' })).toEqual([2, 0])
    expect(await list({ state: 'revoking' })).toEqual([5, 1])
    expect(await list({ state: 'revoking', backend: 'stock' })).toEqual([5])

    const { livingIdsOf, countLivingOf, countLivingOfEach } = store.credentials
    const living = async (whose: { agentId?: string; backend?: string }) => {
      const full = { agentId: undefined, backend: undefined, ...whose }
      const ids = await livingIdsOf(full, T0, 9)
      expect(await countLivingOf(full, T0, 9)).toBe(ids.length)
      return ids.sort()
    }
    const ids = (...which: number[]) => which.map((at) => rows[at]?.id).sort()
    expect(await living({ agentId })).toEqual(ids(0, 3))
    expect(await living({ backend: 'orders' })).toEqual(ids(0, 2))
    expect(await living({ agentId, backend: 'orders' })).toEqual(ids(0))
    expect(await countLivingOf({ agentId, backend: undefined }, T0 + 600_000, 9)).toBe(0)
    expect(await countLivingOfEach([agentId, other, 'ag_none'], 1_000)).toEqual(
      new Map([
        [agentId, 2],
        [other, 1],
        ['ag_none', 0],
      ]),
    )
    expect((await countLivingOfEach([agentId], 1)).get(agentId)).toBe(1)
  })

  test('keep why ending them failed, until they are settled', async () => {
    const { store } = opened
    const row = someCredential(ended)
    await done(store.credentials.insert(row))
    const delay = { attempts: 3, dueAt: T0 + 9, stuckAt: null, failure: 'login_failed' } as const
    await done(store.credentials.postpone(row.id, delay))
    expect(await store.credentials.find(row.id)).toMatchObject(delay)
    await done(store.credentials.settle(row.id, 'revoked', T0 + 10))
    expect((await store.credentials.find(row.id))?.failure).toBeNull()
  })

  test('the last revocations of a backend are kept until its configuration is erased', async () => {
    const { store } = opened
    const backend = backendRow()
    await done(insert('backends', backend))
    const { uid } = backend
    const of = async () => (await store.backends.lastRevocations()).get(uid)
    const lastFailure = { at: T0, reason: 'timeout', credentialId: `cred_${newBody()}` } as const
    await done(...store.backends.recordRevocations(uid, { lastFailure }))
    expect(await of()).toEqual({ lastFailure })
    await done(...store.backends.recordRevocations(uid, { lastSuccess: T0 + 1 }))
    await done(...store.backends.recordRevocations(uid, { lastSuccess: T0 + 2 }))
    expect(await of()).toEqual({ lastSuccess: T0 + 2, lastFailure })
    await done(...store.backends.end(uid, T0 + 3))
    await done(...store.backends.erase(uid))
    // What another node still had to write.
    await done(...store.backends.recordRevocations(uid, { lastSuccess: T0 + 4 }))
    expect(await of()).toBeUndefined()
  })

  if (dialect === 'sqlite') {
    /** How SQLite reads what `ask` queries. */
    const plansOf = async (ask: (engine: Engine) => Promise<unknown>): Promise<string> => {
      const plans: string[] = []
      const explain = async ({ sql, parameters }: { sql: string; parameters: readonly unknown[] }) => {
        const explained = { compile: () => ({ sql: `EXPLAIN QUERY PLAN ${sql}`, parameters }) }
        const rows = await opened.engine.read<{ detail: string }>(explained as never)
        plans.push(...rows.map(({ detail }) => detail))
      }
      await ask({
        ...opened.engine,
        read: async (query) => {
          await explain(query.compile())
          return opened.engine.read(query)
        },
        prepare: (sql) => async (parameters) => {
          await explain({ sql, parameters })
          return opened.engine.prepare(sql)(parameters) as never
        },
      })
      return plans.join('\n')
    }

    test.each<[string, (engine: Engine) => Promise<unknown>, RegExp]>([
      [
        'all that live',
        (e) => openReads(e).listOpen({ state: 'active' }, 'cred_z', 9),
        /USING INDEX credentials_open \(state=\? AND id<\?\)/,
      ],
      [
        'those of an agent',
        (e) => openReads(e).listOpen({ state: 'active', agentId: 'ag_1' }, 'cred_z', 9),
        /USING INDEX credentials_living \(agent_id=\? AND id<\?\)/,
      ],
      [
        'those of a backend',
        (e) => openReads(e).listOpen({ state: 'active', backend: 'db' }, 'cred_z', 9),
        /USING INDEX credentials_open_backend \(backend=\? AND state=\? AND id<\?\)/,
      ],
      [
        'all that have not ended upstream',
        (e) => openReads(e).listOpen({ state: 'revoking' }, undefined, 9),
        /USING INDEX credentials_open \(state=\?\)/,
      ],
      [
        'those of a backend that have not',
        (e) => openReads(e).listOpen({ state: 'revoking', backend: 'db' }, undefined, 9),
        /USING INDEX credentials_open_backend \(backend=\? AND state=\?\)/,
      ],
      [
        'those to end of an agent',
        (e) => openReads(e).livingIdsOf({ agentId: 'ag_1', backend: 'db' }, T0, 9),
        /USING INDEX credentials_living \(agent_id=\?\)/,
      ],
      [
        'those to end of a backend',
        (e) => openReads(e).countLivingOf({ agentId: undefined, backend: 'db' }, T0, 9),
        /USING INDEX credentials_open_backend \(backend=\? AND state=\?\)/,
      ],
      [
        'the count of each agent',
        (e) => openReads(e).countLivingOfEach(['ag_1'], 9),
        /USING COVERING INDEX credentials_living \(agent_id=\?\)/,
      ],
      [
        'the last revocations',
        (e) => createBackends(e).lastRevocations(),
        /SEARCH meta USING INDEX sqlite_autoindex_meta_1 \(key>\? AND key<\?\)/,
      ],
    ])('%s: one index, in its order', async (_, ask, expected) => {
      const plan = await plansOf(ask)
      expect(plan).toMatch(expected)
      expect(plan).not.toMatch(/SCAN credentials|TEMP B-TREE/)
    })
  }
})
