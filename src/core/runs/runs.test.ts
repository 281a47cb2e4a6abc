import { afterEach, describe, expect, it } from 'vitest'
import { LOCAL, type TestCore, testCore } from '../../../test/support/core.ts'
import { type Script, scriptedKind } from '../../../test/support/scripted-kind.ts'
import { someCredential } from '../../../test/support/store.ts'
import { MAX_RUNS_PER_AGENT } from '../../domain/limits.ts'
import type { Run } from '../../domain/run.ts'
import { createPrune } from '../../jobs/prune.ts'
import { createAgent } from '../agents/create-agent.ts'
import { deleteAgent } from '../agents/end-agent.ts'
import { finishEnds } from '../agents/finish-ends.ts'
import { createBackend } from '../backends/configure-backend.ts'
import type { Settings } from '../context.ts'
import { endOwnRun, endRun } from '../credentials/end-run-now.ts'
import { issueCredential } from '../credentials/issue-credential.ts'
import { beatRun } from './beat-run.ts'
import { finishRuns } from './end-run.ts'
import { createRuns } from './known-runs.ts'
import { readRun } from './list-runs.ts'
import { reapRuns } from './reap-runs.ts'
import { startRun } from './start-run.ts'

let test: TestCore
afterEach(() => test.close())
const signal = new AbortController().signal

/** An agent with runs of one second, on a node whose jobs the test drives. */
async function world(settings: Partial<Settings> = {}, script: Script = {}) {
  test = await testCore(settings, [scriptedKind(script)])
  const { core } = test
  test.freeze()
  await createBackend(core, LOCAL, { type: 'jwt', name: 'orders', config: { audience: 'x' } }, false)
  await createBackend(core, LOCAL, { type: 'scripted', name: 'db', config: {} }, false)
  const { agent, token } = await createAgent(core, LOCAL, { name: 'one', scopes: ['orders', 'db'] })
  const actor = await test.actor(token)
  const start = async (heartbeat = '1s') => (await startRun(core, actor, { heartbeat })).id
  const issue = (run: string, backend = 'orders') =>
    issueCredential(core, actor, { backend, run, scopes: ['read'] })
  const stateOf = async (id: string) => {
    const { isRunning, reason } = await readRun(core, id)
    return isRunning ? 'running' : reason
  }
  const beat = async (id: string) => beatRun(core, actor.caller, id)
  /** Time passes while the node answers; `beating` beat once a second, as `heartbeat` says. */
  async function pass(ms: number, ...beating: string[]): Promise<void> {
    for (let passed = 0; passed < ms; passed += 250) {
      test.advance(250)
      await core.answering.look()
      if (passed % 1_000 === 0) for (const id of beating) await beat(id)
      await core.runs.flush()
      while (await reapRuns(core));
    }
  }
  await core.answering.look()
  return { core, agent, actor, start, issue, stateOf, beat, pass }
}

describe('a run that stops beating', () => {
  it('ends with its credentials after three intervals, and within one more', async () => {
    const { core, start, issue, stateOf, pass } = await world()
    const [dead, healthy] = [await start(), await start()]
    const issued = await issue(dead)
    const other = await issue(healthy)
    await pass(3_000, healthy)
    expect(await stateOf(dead)).toBe('running')
    await pass(1_000, healthy)
    expect(await stateOf(dead)).toBe('missed_heartbeat')
    expect(await core.store.credentials.find(issued.id)).toMatchObject({
      state: 'revoked',
      endReason: 'run_ended',
    })
    await pass(20_000, healthy)
    expect(await stateOf(healthy)).toBe('running')
    expect((await core.store.credentials.find(other.id))?.state).toBe('active')
    const ends = await test.audit('run.ended')
    expect(ends).toMatchObject([{ runId: dead, actor: 'system', facts: { reason: 'missed_heartbeat' } }])
  })

  it('is not ended when a beat comes at another node at the same time', async () => {
    const { core, start, stateOf, pass } = await world()
    const id = await start()
    await pass(3_250)
    test.before(
      (change) => change.some((step) => step.op === 'run' && step.sql.includes('update "runs"')),
      () => core.store.commit([core.store.runs.beat([[id, core.store.now()]])]),
    )
    await pass(750)
    expect(await stateOf(id)).toBe('running')
    await pass(4_000)
    expect(await stateOf(id)).toBe('missed_heartbeat')
  })

  it('gets the beats that another node has not written yet, because it is looked at twice', async () => {
    const { core, start, beat, stateOf } = await world()
    const id = await start()
    test.advance(2_900)
    const other = createRuns(core)
    const run = (await other.find(id)) as Run
    other.beat(run, core.store.now())
    for (let n = 0; n < 8; n += 1) {
      test.advance(50)
      await core.answering.look()
      await reapRuns(core)
    }
    expect(await stateOf(id)).toBe('running')
    await other.flush()
    test.advance(1_000)
    await core.answering.look()
    await reapRuns(core)
    expect(await stateOf(id)).toBe('running')
    expect(await beat(id)).toBeGreaterThan(core.store.now())
  })
})

describe('an outage of ours', () => {
  it.each([
    ['1s', 60_000],
    ['1s', 5_000],
    ['10s', 3_600_000],
  ])(
    'gives each run with a heartbeat of %s one interval to beat first, after %i ms',
    async (heartbeat, ms) => {
      const { core, start, stateOf, beat, pass } = await world()
      const [healthy, dead] = [await start(heartbeat), await start(heartbeat)]
      const interval = heartbeat === '1s' ? 1_000 : 10_000
      await pass(interval, healthy, dead)
      // Nothing runs: the process, the machine or the store stands still.
      test.advance(ms)
      await reapRuns(core)
      await pass(interval - 250)
      expect([await stateOf(healthy), await stateOf(dead)]).toEqual(['running', 'running'])
      await beat(healthy)
      await pass(interval)
      expect([await stateOf(healthy), await stateOf(dead)]).toEqual(['running', 'missed_heartbeat'])
    },
  )

  it('keeps no run while its store cannot be written, and ends none either', async () => {
    const { core, start, stateOf } = await world()
    const id = await start()
    const store = Object.create(core.store, { trouble: { value: () => 'the disk is full' } })
    const answering = { ...core.answering, since: () => Number.POSITIVE_INFINITY }
    test.advance(60_000)
    await reapRuns({ ...core, store, answering })
    test.advance(60_000)
    await reapRuns({ ...core, store, answering })
    expect(await stateOf(id)).toBe('running')
  })
})

describe('a beat', () => {
  it('is durable within half an interval, so that a crash loses no run', async () => {
    const { core, start, beat } = await world()
    const id = await start('10s')
    test.advance(9_000)
    await beat(id)
    const at = core.store.now()
    const stored = async () => (await core.store.runs.list({ id }, undefined, 1))[0]?.beatAt
    test.advance(250)
    await core.runs.flush()
    expect(await stored()).toBe(at - 9_000)
    test.advance(4_500)
    await core.runs.flush()
    expect(await stored()).toBe(at)
    expect((await readRun(core, id)).beatAt).toBe(at)
  })

  it('that cannot be written is kept, and written at the next look', async () => {
    const { core, start } = await world()
    const id = await start()
    let isDown = true
    const commit: typeof core.store.commit = (change, how) =>
      isDown ? Promise.reject(new Error('down')) : core.store.commit(change, how)
    const runs = createRuns({ store: { ...core.store, commit } })
    test.advance(500)
    runs.beat((await runs.find(id)) as Run, core.store.now())
    await expect(runs.flush(true)).rejects.toThrow('down')
    expect(runs.latestBeat(id)).toBe(core.store.now())
    isDown = false
    await runs.flush()
    expect((await core.store.runs.list({ id }, undefined, 1))[0]?.beatAt).toBe(core.store.now())
    expect(runs.latestBeat(id)).toBeUndefined()
  })

  it('of a frozen node does not take back what another has written', async () => {
    const { core, start } = await world()
    const id = await start()
    const now = core.store.now()
    await core.store.commit([core.store.runs.beat([[id, now + 5_000]])])
    await core.store.commit([core.store.runs.beat([[id, now + 1_000]])])
    expect((await core.store.runs.list({ id }, undefined, 1))[0]?.beatAt).toBe(now + 5_000)
  })

  it('for a run that ended on another node is refused', async () => {
    const { core, start, beat } = await world()
    const id = await start()
    await beat(id)
    await endRun(core, LOCAL, id)
    await expect(beat(id)).rejects.toMatchObject({ code: 'gone' })
  })
})

describe('an issue that is under way when its run ends', () => {
  it('leaves nothing, whether the end comes before its first commit', async () => {
    const { core, agent, start, issue } = await world()
    for (const backend of ['orders', 'db']) {
      const id = await start()
      test.before(
        (change) => change.some((step) => step.op === 'insert' && step.table === 'credentials'),
        () => endRun(core, LOCAL, id),
      )
      await expect(issue(id, backend)).rejects.toMatchObject({ code: 'gone' })
      expect(await core.store.credentials.countLiving(agent.id, 9)).toBe(0)
    }
  })

  it('or between its commits', async () => {
    const revoked: unknown[] = []
    let end = async () => undefined as unknown
    const { core, agent, start, issue } = await world(
      {},
      {
        issue: async () => void (await end()),
        revoke: async ({ id }) => void revoked.push(id),
      },
    )
    const id = await start()
    end = () => endRun(core, LOCAL, id)
    await expect(issue(id, 'db')).rejects.toMatchObject({ code: 'conflict' })
    expect(revoked).toHaveLength(1)
    expect(await core.store.credentials.countLiving(agent.id, 9)).toBe(0)
    const [entry] = await test.audit('credential.requested')
    expect(entry).toMatchObject({ runId: id, credentialId: revoked[0] })
  })

  it('or by a hair before the second', async () => {
    const revoked: unknown[] = []
    const { core, agent, start, issue } = await world({}, { revoke: async ({ id }) => void revoked.push(id) })
    const id = await start()
    test.before(
      (change) => change.some((step) => step.op === 'run' && step.sql.includes('"secret_hash"')),
      () => endRun(core, LOCAL, id),
    )
    await expect(issue(id, 'db')).rejects.toMatchObject({ code: 'conflict' })
    expect(revoked).toHaveLength(1)
    expect(await core.store.credentials.countLiving(agent.id, 9)).toBe(0)
  })
})

describe('bounds', () => {
  it('of `runs.max`: the run ends then, and nothing of it lasts longer', async () => {
    const { core, start, issue, stateOf, beat, pass } = await world({ runsMaxMs: 5_000 })
    const id = await start()
    const issued = await issue(id)
    const { expiresAt } = await readRun(core, id)
    expect(expiresAt).toBe(core.store.now() + 5_000)
    // A JWT ends at a whole second.
    expect(issued.expiresAt).toBeGreaterThan(Number(expiresAt) - 1_000)
    expect(issued.expiresAt).toBeLessThanOrEqual(Number(expiresAt))
    await pass(4_750, id)
    expect(await stateOf(id)).toBe('running')
    test.advance(250)
    await expect(beat(id)).rejects.toMatchObject({ code: 'gone' })
    await expect(issue(id)).rejects.toMatchObject({ code: 'gone' })
    expect(await stateOf(id)).toBe('expired')
    await reapRuns(core)
    expect((await test.audit('run.ended'))[0]).toMatchObject({ runId: id, facts: { reason: 'expired' } })
  })

  it('of ten thousand living runs of one agent', async () => {
    const { core, agent, actor, start } = await world()
    const first = await start()
    const one = (await core.store.runs.find(first)) as Run
    const more = Array.from({ length: MAX_RUNS_PER_AGENT - 1 }, () => ({ ...one, id: core.ids.id('run') }))
    for (let from = 0; from < more.length; from += 500)
      await core.store.commit(more.slice(from, from + 500).flatMap((run) => core.store.runs.insert(run)))
    test.advance(20_000)
    await expect(start()).rejects.toMatchObject({ code: 'rate_limited' })
    await endOwnRun(core, actor, first)
    expect(await core.store.runs.countLiving(agent.id, MAX_RUNS_PER_AGENT)).toBe(MAX_RUNS_PER_AGENT - 1)
    await start()
  })
})

describe('very many', () => {
  it('credentials of a run end at once for readers, and then in slices, each with its entry', async () => {
    const { core, agent, start } = await world()
    const { store } = core
    const runId = await start()
    const expiresAt = store.now() + 600_000
    const count = 2 * store.endSlice + 1
    const credentials = Array.from({ length: count }, () =>
      someCredential({ agentId: agent.id, runId, revocation: 'none', expiresAt, dueAt: expiresAt }),
    )
    await store.commit(credentials.map(store.credentials.insert))
    await endRun(core, LOCAL, runId)
    for (const { id } of credentials) expect((await store.credentials.find(id))?.state).toBe('revoked')
    expect(await store.credentials.livingOf(agent.id, store.now(), '', 9)).toEqual([])
    expect(await store.runs.unfinishedEnds(9)).toHaveLength(1)
    await finishRuns(core, signal)
    expect(await store.runs.unfinishedEnds(9)).toEqual([])
    const entries = await store.audit.query({ runId, action: 'credential.revoked' }, 1_000)
    expect(entries).toHaveLength(count)
    for (const { actor, details } of entries)
      expect([actor, details]).toEqual(['local', { reason: 'run_ended' }])
  })

  it('dead runs end in slices, and very many runs of an agent after it', async () => {
    const { core, agent, start, pass } = await world()
    const { store } = core
    const one = (await store.runs.find(await start())) as Run
    const count = 2 * store.endSlice + 1
    const runs = Array.from({ length: count }, () => ({ ...one, id: core.ids.id('run') }))
    await store.commit(runs.flatMap((run) => store.runs.insert(run)))
    await pass(4_000)
    expect(await store.runs.countLiving(agent.id, count)).toBe(0)
    expect(await test.audit('run.ended')).toHaveLength(count + 1)

    const later = runs.map((run) => ({ ...run, id: core.ids.id('run') }))
    await store.commit(later.flatMap((run) => store.runs.insert(run)))
    await deleteAgent(core, LOCAL, 'one')
    for (const { id } of later)
      expect(await store.runs.find(id)).toMatchObject({ endedAt: store.now(), reason: 'agent_ended' })
    await finishEnds(core, signal)
    expect(await store.runs.countLiving(agent.id, 1)).toBe(0)
    expect(await store.agents.unfinishedEnds(1)).toEqual([])
    test.advance(4_000)
    await reapRuns(core)
    expect(await store.runs.due(store.now() + 1e9, 9)).toEqual([])
  })

  it.each(['1s', '1h'])(
    'dead runs end beside one whose end is refused, which is read again later (heartbeat %s)',
    async (heartbeat) => {
      const { core, start, stateOf } = await world(heartbeat === '1h' ? { runsMaxMs: 5_000 } : {})
      const bad = await start(heartbeat)
      const others = [await start(heartbeat), await start(heartbeat)]
      test.advance(5_000)
      let refusals = 0
      const commit: typeof core.store.commit = async (change, options) => {
        const isEnd = change.some(({ op }) => op === 'invalidate') && JSON.stringify(change).includes(bad)
        if (!isEnd) return core.store.commit(change, options)
        refusals += 1
        return { done: false, step: 0, reason: 'rows' }
      }
      const answering = { ...core.answering, since: () => core.store.now() - 10_000 }
      const refusing = { ...core, answering, store: { ...core.store, commit } }
      // The first look moves on those that missed their beats.
      await reapRuns(refusing)
      test.advance(1_000)
      await reapRuns(refusing)
      expect(await Promise.all(others.map(stateOf))).toEqual(
        heartbeat === '1h' ? ['expired', 'expired'] : ['missed_heartbeat', 'missed_heartbeat'],
      )
      const before = refusals
      expect(await reapRuns(refusing)).toBe(false)
      expect(refusals - before).toBeLessThanOrEqual(2)
      await reapRuns({ ...core, answering })
      expect((await core.store.runs.find(bad))?.reason).toBe(
        heartbeat === '1h' ? 'expired' : 'missed_heartbeat',
      )
    },
  )

  it('old runs are deleted after the retention', async () => {
    const { core, start } = await world()
    const id = await start()
    await endRun(core, LOCAL, id)
    test.advance(86_400_000)
    await createPrune(core, 3_600_000)(signal)
    expect(await core.store.runs.find(id)).toBeUndefined()
  })
})
