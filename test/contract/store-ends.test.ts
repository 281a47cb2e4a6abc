import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { finishEnds } from '../../src/core/agents/finish-ends.ts'
import type { Change, Step } from '../../src/store/engine/change.ts'
import { agentRow, DIALECTS, openTestStore, someCredential, type TestStore } from '../support/store.ts'

const by = { actor: 'local', ipAddress: '::1', userAgent: null, authMethod: 'local', requestId: 'req_1' }
const NEVER = new AbortController().signal

describe.each(DIALECTS)('an agent that ends with very many credentials, on %s', (dialect) => {
  let opened: TestStore
  beforeAll(async () => {
    opened = await openTestStore(dialect)
  })
  afterAll(() => opened.close())

  const done = async (...change: Change) => expect(await opened.store.commit(change)).toEqual({ done: true })

  /** Ends an agent as `endAgent` does, and leaves its credentials to `finishEnds`. */
  async function endWithCredentials(count: number) {
    const { store } = opened
    const agent = agentRow()
    const endedAt = store.now()
    const base = {
      agentId: agent.id,
      backendUid: 'be_many',
      expiresAt: endedAt + 600_000,
      dueAt: endedAt + 600_000,
    }
    const living = Array.from({ length: count }, (_, n) =>
      someCredential({ ...base, revocation: n % 2 === 0 ? 'exact' : 'none' }),
    )
    const pending = someCredential({ ...base, state: 'pending', sealedHandle: null })
    const expired = someCredential({ ...base, expiresAt: endedAt, dueAt: endedAt })
    await done(
      { op: 'insert', table: 'agents', row: agent },
      ...[...living, pending, expired].map(store.credentials.insert),
    )
    const begun: Step = store.agents.beginEnd({ agentId: agent.id, reason: 'agent_deleted', endedAt, by })
    await done(...store.agents.end(agent.id, 'deleted', endedAt), begun)
    return { agent, endedAt, living, pending, expired }
  }

  test('every reader sees its credentials ended with it, and none is activated any more', async () => {
    const { store } = opened
    const { endedAt, living, pending, expired } = await endWithCredentials(4)
    const set = { endReason: 'agent_deleted', endedAt } as const
    for (const credential of living) {
      const { id, revocation } = credential
      const end = revocation === 'exact' ? { state: 'revoking' } : { state: 'revoked', settledAt: endedAt }
      expect(await store.credentials.find(id)).toEqual({ ...credential, ...set, ...end })
    }
    const ids = [...living, pending, expired].map(({ id }) => id)
    const found = new Map((await store.credentials.findAll(ids)).map((one) => [one.id, one]))
    const listed = new Map((await store.credentials.list(undefined, 100)).map((one) => [one.id, one]))
    for (const id of ids) {
      expect(found.get(id)).toEqual(await store.credentials.find(id))
      expect(listed.get(id)).toEqual(await store.credentials.find(id))
    }
    expect(found.get(pending.id)).toMatchObject({ ...set, state: 'revoking' })
    expect(found.get(expired.id)).toEqual(expired)
    const activation = { expiresAt: endedAt + 9, upstreamExpiresAt: null, secretHash: 'h', sealedHandle: 'x' }
    const activated = await store.commit([store.credentials.activate(pending.id, activation)])
    expect(activated).toEqual({ done: false, step: 0, reason: 'rows' })
  })

  test('ends them in slices, each with one entry, however many nodes do it at once', async () => {
    const { store } = opened
    const { agent, endedAt, expired } = await endWithCredentials(store.endSlice + 20)
    const other = dialect === 'postgres' ? await opened.another() : opened
    const before = opened.engine.stats.changes
    await Promise.all([finishEnds({ store }, NEVER), finishEnds({ store: other.store }, NEVER)])
    expect(opened.engine.stats.changes - before).toBeGreaterThanOrEqual(dialect === 'sqlite' ? 2 : 1)
    const { build, read } = opened.engine
    const rows = await read<{ id: string; state: string; ended_at: number | null; revocation: string }>(
      build.selectFrom('credentials').selectAll().where('agent_id', '=', agent.id),
    )
    for (const row of rows) {
      if (row.id === expired.id) expect(row.ended_at).toBeNull()
      else expect(row).toMatchObject({ ended_at: endedAt, end_reason: 'agent_deleted' })
    }
    const entries = await read<{ credential_id: string }>(
      build.selectFrom('audit').select('credential_id').where('agent_id', '=', agent.id),
    )
    expect(entries).toHaveLength(rows.length - 1)
    expect(new Set(entries.map((entry) => entry.credential_id)).size).toBe(entries.length)
    expect(await store.agents.unfinishedEnds(10)).toEqual([])
    if (other !== opened) await other.close()
  })
})

test.each([
  ['an agent', { agentId: 'ag_1' }, 'credentials_living'],
  ['a backend', { backendUid: 'be_1' }, 'credentials_due'],
])('the end of %s reads none but its own living credentials', async (_, owner, index) => {
  const { store, engine, close } = await openTestStore('sqlite')
  const plans = store.credentials.endAll(owner, 'agent_deleted', store.now(), by).map(async (step) => {
    if (step.op !== 'run') throw new Error('not a statement')
    const explain = { sql: `EXPLAIN QUERY PLAN ${step.sql}`, parameters: step.params }
    return (await engine.read<{ detail: string }>({ compile: () => explain as never })).map(
      ({ detail }) => detail,
    )
  })
  const searched = [expect.stringMatching(new RegExp(`^SEARCH credentials USING INDEX ${index} `))]
  expect(await Promise.all(plans)).toEqual([searched, searched])
  await close()
})
