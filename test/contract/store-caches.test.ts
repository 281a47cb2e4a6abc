import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Step } from '../../src/store/engine/change.ts'
import { agentRow, auditRow, issuerKey, openTestStore, type TestStore } from '../support/store.ts'

describe('two nodes on one PostgreSQL', () => {
  let a: TestStore
  let b: TestStore
  beforeAll(async () => {
    a = await openTestStore('postgres')
    b = await a.another()
  })
  afterAll(async () => {
    await b.close()
    await a.close()
  })

  test('a change that waits for its agent sees a token revoked in the meantime, alone or merged', async () => {
    const agent = agentRow()
    await a.store.commit([
      { op: 'insert', table: 'agents', row: agent },
      a.store.tokens.insertIssuerKey(issuerKey({ kid: agent.id })),
    ])
    const token = (jti: string): Step => {
      const of = { kid: agent.id, agentId: agent.id }
      return { op: 'token', jti, ...of, expiresAt: Date.now() + 3_600_000 }
    }
    const insert = (): Step => ({ op: 'insert', table: 'audit', row: auditRow({ agent_id: agent.id }) })
    const admin = new pg.Client(a.url)
    await admin.connect()
    // Another node has revoked the token, but its transaction still runs.
    await admin.query('BEGIN')
    await admin.query('UPDATE agents SET version = version + 1 WHERE id = $1', [agent.id])
    await admin.query("INSERT INTO revoked_tokens VALUES ('gone', 9000000000000)")
    const waiting = [
      [token('gone'), insert()],
      [token('gone'), ...a.store.tokens.tidy(0), insert()],
      [token('kept'), insert()],
      [token('kept'), ...a.store.tokens.tidy(0), insert()],
    ].map((change) => a.store.commit(change))
    const blocked = a.engine.prepare(
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    )
    // One lane waits for the row; the other changes wait behind it.
    await expect.poll(async () => (await blocked([])).length).toBeGreaterThan(0)
    await admin.query('COMMIT')
    const refused = { done: false, step: 0, reason: 'guard' }
    expect(await Promise.all(waiting)).toEqual([refused, refused, { done: true }, { done: true }])
    await admin.end()
  })

  test('B hears what A has changed, and only that', async () => {
    await b.store.generation()
    const before = b.store.changedAt('untouched')
    await a.store.commit([{ op: 'invalidate', topic: 'one' }])
    await a.store.commit([
      { op: 'invalidate', topic: 'two' },
      { op: 'invalidate', topic: 'one' },
    ])
    const now = await b.store.generation()
    expect(b.store.changedAt('one')).toBe(now)
    expect(b.store.changedAt('two')).toBe(now - 1)
    expect(b.store.changedAt('untouched')).toBe(before)
    await a.store.commit([{ op: 'invalidate' }])
    expect(b.store.changedAt('untouched')).toBe(before)
    expect(await b.store.generation()).toBe(now + 1)
    expect(b.store.changedAt('untouched')).toBe(now + 1)
  })

  test('B takes everything for changed when it has missed more than the row keeps', async () => {
    const raise = (topic: string): Step => ({ op: 'invalidate', topic })
    const before = await b.store.generation()
    await a.store.commit(Array.from({ length: 48 }, (_, n) => raise(`topic-${n}`)))
    expect(await b.store.generation()).toBe(before + 48)
    expect(b.store.changedAt('topic-0')).toBe(before + 1)
    expect(b.store.changedAt('untouched')).toBeLessThanOrEqual(before)
    await a.store.commit(Array.from({ length: 49 }, (_, n) => raise(`topic-${n}`)))
    expect(await b.store.generation()).toBe(before + 97)
    expect(b.store.changedAt('untouched')).toBe(before + 97)
  })
})
