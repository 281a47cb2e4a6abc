import { expect, test } from 'vitest'
import { backendRow, credentialRow, openTestStore, T0 } from '../../test/support/store.ts'
import { createMetrics } from './metrics.ts'

test('counts the unsettled credentials of a deleted backend even when a new backend has its name', async () => {
  const { store, close } = await openTestStore('sqlite')
  const backends = [
    backendRow({ name: 'db', name_key: 'db', ended_at: T0 }),
    backendRow({ name: 'db', name_key: 'db' }),
  ]
  const [deleted, living] = backends.map(({ uid }) => uid)
  const left = {
    backend_uid: deleted ?? '',
    state: 'revoking',
    ended_at: T0,
    due_at: store.now() - 60_000,
  } as const
  await store.commit([
    ...backends.map((row) => ({ op: 'insert', table: 'backends', row }) as const),
    { op: 'insert', table: 'credentials', row: credentialRow({ ...left, stuck_at: T0 }) },
    { op: 'insert', table: 'credentials', row: credentialRow(left) },
    ...[1, 2, 3].map(
      () =>
        ({
          op: 'insert',
          table: 'credentials',
          row: credentialRow({ backend_uid: living ?? '', state: 'active', due_at: store.now() + 60_000 }),
        }) as const,
    ),
  ])
  for (const listed of [backends, backends.toReversed()]) {
    const metrics = createMetrics(store, { all: async () => listed, now: async () => [] })
    const text = await metrics.render()
    expect(text).toContain('mayfly_credentials_active{backend="db"} 3\n')
    expect(text).toContain('mayfly_credentials_unsettled{backend="db"} 2\n')
    expect(text).toContain('mayfly_credentials_stuck{backend="db"} 1\n')
    expect(Number(/sweep_lag_seconds\{backend="db"\} ([\d.]+)/.exec(text)?.[1])).toBeGreaterThanOrEqual(60)
  }
  await close()
})

test('counts runs that live, in the store, and those that began, ended and beat, on this node', async () => {
  const { store, close } = await openTestStore('sqlite')
  const run = {
    agentId: 'ag_1',
    agentName: 'one',
    purpose: null,
    heartbeatMs: 10_000,
    version: 1,
    startedAt: T0,
    expiresAt: null,
    endedAt: null,
    reason: null,
    endedBy: null,
    lastBeat: null,
    ipAddress: null,
    userAgent: null,
  } as const
  const ended = { endedAt: T0, reason: 'completed', lastBeat: T0 } as const
  await store.commit(
    Array.from({ length: 10_000 }, (_, n) => ({ ...run, id: `run_${n}` })).flatMap(store.runs.insert),
  )
  await store.commit(store.runs.insert({ ...run, ...ended, id: 'run_ended' }))
  const { meter, render } = createMetrics(store, { all: async () => [], now: async () => [] })
  meter.runStarted()
  for (let beat = 0; beat < 3; beat += 1) meter.runBeat()
  meter.runEnded('missed_heartbeat', 2)
  meter.runEnded('completed', 1)
  const text = await render()
  expect(text).toContain('mayfly_runs_running 10000\n')
  expect(text).toContain('mayfly_runs_started_total 1\n')
  expect(text).toContain('mayfly_run_beats_total 3\n')
  expect(text).toContain('mayfly_runs_ended_total{reason="missed_heartbeat"} 2\n')
  expect(text).toContain('mayfly_runs_ended_total{reason="completed"} 1\n')
  await close()
})
