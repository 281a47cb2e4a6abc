import { describe, expect, test } from 'vitest'
import type { Step } from '../../src/store/engine/change.ts'
import {
  agentRow,
  auditRow,
  credentialRow,
  DIALECTS,
  openTestStore,
  someCredential,
  T0,
} from '../support/store.ts'
import { insert, useStore } from '../support/use-store.ts'

describe.each(DIALECTS)('the store on %s', (dialect) => {
  const opened = useStore(dialect)
  const { commit, done, living } = opened
  const guard = (table: 'agents' | 'backends', id: string, version = 1): Step => ({
    op: 'guard',
    table,
    id,
    version,
  })

  test('a change happens whole or not at all, and says where it was refused', async () => {
    const { store } = opened
    const { agent, backend } = await living()
    const row = someCredential({ agentId: agent.id, backendUid: backend.uid })
    const entry = auditRow()
    await done(
      guard('agents', agent.id),
      guard('backends', backend.uid),
      store.credentials.insert(row),
      insert('audit', entry),
    )
    expect(await store.credentials.find(row.id)).toEqual(row)
    const other = credentialRow()
    expect(await commit([insert('credentials', other), insert('audit', entry)])).toEqual({
      done: false,
      step: 1,
      reason: 'unique',
    })
    expect(await commit([insert('audit', auditRow()), insert('audit', entry)])).toEqual({
      done: false,
      step: 1,
      reason: 'unique',
    })
    expect(
      await commit([insert('credentials', other), store.credentials.settle(row.id, 'revoked', T0)]),
    ).toEqual({ done: false, step: 1, reason: 'rows' })
    expect(
      await commit([
        guard('agents', agent.id),
        guard('backends', backend.uid, 2),
        insert('credentials', other),
      ]),
    ).toEqual({ done: false, step: 1, reason: 'guard' })
    expect(await commit([insert('credentials', other), guard('agents', 'ag_none')])).toEqual({
      done: false,
      step: 1,
      reason: 'guard',
    })
    expect(await store.credentials.find(other.id)).toBeUndefined()
  })

  test('refuses a change that cannot be stored, and no other', async () => {
    const { store } = opened
    const { agent } = await living()
    const good = auditRow()
    const bad = [
      { ...auditRow(), at: new Date() as unknown as number },
      { ...auditRow(), at: true as unknown as number },
      { ...auditRow(), at: Number.NaN },
      { ...auditRow(), at: 1.5 },
      { ...auditRow(), actor: 'a\0b' },
      { ...auditRow(), actor: null as unknown as string },
    ]
    const answers = await Promise.allSettled([
      ...bad.map((row) => commit([guard('agents', agent.id), insert('audit', row)])),
      commit([{ op: 'run', sql: 'DELETE FROM no_such_table', params: [], rows: 'any' }]),
      commit([insert('audit', good)]),
    ])
    expect(answers.map((one) => one.status)).toEqual([...Array(bad.length + 1).fill('rejected'), 'fulfilled'])
    expect(store.trouble()).toBeUndefined()
    expect((await store.audit.query({}, 1_000)).map((row) => row.id)).toContain(good.id)
  })

  test('of two changes that race for one name, one wins and the other is refused', async () => {
    const rows = Array.from({ length: 8 }, () => agentRow({ name_key: `raced ${dialect}` }))
    const outcomes = await Promise.all(
      rows.map((row) => commit([insert('audit', auditRow()), insert('agents', row)])),
    )
    expect(outcomes.filter((one) => one.done)).toHaveLength(1)
    expect(outcomes.filter((one) => !one.done)).toEqual(
      Array(7).fill({ done: false, step: 1, reason: 'unique' }),
    )
    const winner = rows[outcomes.findIndex((one) => one.done)]
    await done(...opened.store.agents.end(winner?.id ?? '', 'deleted', T0))
    await done(insert('agents', agentRow({ name_key: `raced ${dialect}` })))
  })

  test('invalidate raises the generation if the change commits, and only then', async () => {
    const { store } = opened
    const before = await store.generation()
    expect(await commit([{ op: 'invalidate' }, guard('agents', 'ag_none')])).toMatchObject({ done: false })
    expect(await store.generation()).toBe(before)
    await done({ op: 'invalidate' })
    expect(await store.generation()).toBeGreaterThan(before)
  })

  test('a guard is refused once the agent is ended or changed', async () => {
    const { store } = opened
    const { agent } = await living()
    await done(...store.agents.touch(agent.id))
    expect(await commit([guard('agents', agent.id), insert('audit', auditRow())])).toMatchObject({ step: 0 })
    await done(guard('agents', agent.id, 2), insert('audit', auditRow()))
    await done(...store.agents.end(agent.id, 'deleted', T0))
    for (const version of [1, 2, 3])
      expect(await commit([guard('agents', agent.id, version)])).toMatchObject({ reason: 'guard' })
    expect(await commit(store.agents.end(agent.id, 'deleted', T0))).toMatchObject({ reason: 'rows' })
  })

  test('a guard does not hold because of what a refused change did in the same batch', async () => {
    const { store } = opened
    const { agent } = await living()
    const entry = auditRow()
    await done(insert('audit', entry))
    const [touch = { op: 'invalidate' }] = store.agents.touch(agent.id)
    const outcomes = await Promise.all([
      commit([touch, guard('agents', agent.id, 2), insert('audit', entry)]),
      commit([guard('agents', agent.id, 2), insert('audit', auditRow())]),
    ])
    expect(outcomes).toEqual([
      { done: false, step: 2, reason: 'unique' },
      { done: false, step: 0, reason: 'guard' },
    ])
  })

  test('meta values are replaced by compare and set', async () => {
    const { meta } = opened.store
    await done(meta.add('k', '1'))
    await done(meta.replace('k', '1', '2'))
    expect(await commit([meta.replace('k', '1', '3')])).toMatchObject({ reason: 'rows' })
    expect(await meta.get('k')).toBe('2')
  })

  test('the clock is near and never goes back', () => {
    const readings = Array.from({ length: 1_000 }, () => opened.store.now())
    expect(readings).toEqual(readings.toSorted((one, other) => one - other))
    expect(readings.every(Number.isSafeInteger)).toBe(true)
    if (dialect === 'postgres') expect(Math.abs((readings[0] ?? 0) - Date.now())).toBeLessThan(10_000)
  })

  test('a closed store acknowledges no new change, and settles those queued before', async () => {
    const closing = await openTestStore(dialect)
    const queued = Array.from({ length: 600 }, () => closing.store.commit([insert('audit', auditRow())]))
    const end = closing.close()
    expect(new Set((await Promise.all(queued)).map((one) => one.done))).toEqual(new Set([true]))
    await end
    await expect(closing.store.commit([insert('audit', auditRow())])).rejects.toMatchObject({
      detail: 'the store is closed',
    })
  })
})
