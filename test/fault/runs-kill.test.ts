import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { LONG } from '../support/long.ts'
import { newMasterKey } from '../support/master-key.ts'
import { startOwnPostgres, startPostgres, type TestPostgres } from '../support/postgres.ts'
import { poll, type ServerProcess, startServerProcess } from '../support/server-process.ts'

/** Runs that beat at the node that is killed; a quarter of them are dead from then on. */
const COUNT = LONG ? 5_000 : 200
const INTERVAL_MS = LONG ? 10_000 : 2_000
const AT_ONCE = 16

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface ShownRun {
  readonly id: string
  readonly state: string
  readonly reason: string | null
  readonly last_beat: string
  readonly ended_at: string | null
}

/** Does `work` for all, some at once. */
async function forAll<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const queue = all.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const one of queue) await work(one)
    }),
  )
}

/** Nodes of one store, and how to start one more in place of one that was killed. */
async function nodes(dialect: 'sqlite' | 'postgres', startIts: () => Promise<TestPostgres> = startPostgres) {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-runs-kill-'))
  ends.push(() => rm(directory, { recursive: true, force: true }))
  const masterKeyFile = join(directory, 'master.key')
  await writeFile(masterKeyFile, newMasterKey(), { mode: 0o400 })
  const postgres = dialect === 'postgres' ? await startIts() : undefined
  if (postgres !== undefined) ends.push(() => postgres.stop())
  const database = await postgres?.createDatabase()
  if (database !== undefined && startIts === startPostgres) ends.push(() => database.drop())
  const start = async (name: string) => {
    const server = await startServerProcess({
      dataDir: join(directory, name),
      flags: ['--master-key-file', masterKeyFile],
      ...(database === undefined ? {} : { databaseUrl: database.url }),
    })
    ends.push(async () => (server.hasEnded() ? undefined : server.kill()))
    return server
  }
  return { start }
}

/** The clients of these runs: each beats once an interval, and twice as often while nobody answers. */
function beating(
  token: string,
  ids: readonly string[],
  where: () => ServerProcess,
  intervalMs = INTERVAL_MS,
) {
  const stopping = new AbortController()
  const refused: string[] = []
  const beat = async (id: string) => {
    const reply = await where()
      .call(token, 'POST', `/v1/runs/${id}/heartbeat`)
      .catch(() => undefined)
    if (reply === undefined) return false
    if (reply.status !== 200 && reply.status !== 503) refused.push(`${id}: ${reply.status}`)
    return reply.status === 200
  }
  const done = (async () => {
    while (!stopping.signal.aborted) {
      const begun = performance.now()
      let isAway = false
      await forAll(ids, async (id) => {
        if (!(await beat(id))) isAway = true
      })
      const every = isAway ? intervalMs / 2 : intervalMs
      await sleep(Math.max(0, every - (performance.now() - begun)), undefined, {
        signal: stopping.signal,
      }).catch(() => undefined)
    }
  })()
  return {
    refused,
    stop: () => {
      stopping.abort()
      return done
    },
  }
}

test.each(['sqlite', 'postgres'] as const)(
  'a node that is killed with many runs beating at it: none of the healthy ends, all of the dead end (%s)',
  { timeout: LONG ? 600_000 : 180_000 },
  async (dialect) => {
    const { start } = await nodes(dialect)
    const killed = await start('one')
    const other = dialect === 'postgres' ? await start('two') : undefined
    await killed.call(undefined, 'POST', '/v1/admin/backends', {
      type: 'jwt',
      name: 'orders',
      config: { audience: 'x' },
    })
    const { body: agent } = await killed.call<{ token: string }>(undefined, 'POST', '/v1/admin/agents', {
      name: 'fleet',
      scopes: ['orders'],
    })
    const ids: string[] = []
    await forAll(Array.from({ length: COUNT }), async () => {
      const { body } = await killed.call<{ id: string }>(agent.token, 'POST', '/v1/runs', {
        heartbeat: `${INTERVAL_MS}ms`,
      })
      ids.push(body.id)
    })
    const dead = ids.filter((_, n) => n % 4 === 0)
    const healthy = ids.filter((_, n) => n % 4 !== 0)
    const issued = new Map<string, string>()
    await forAll([...dead.slice(0, 20), ...healthy.slice(0, 20)], async (run) => {
      const { body } = await killed.call<{ id: string }>(agent.token, 'POST', '/v1/credentials/orders', {
        run,
      })
      issued.set(run, body.id)
    })

    let where = killed
    const doomed = beating(agent.token, dead, () => killed)
    const living = beating(agent.token, healthy, () => where)
    await sleep(2 * INTERVAL_MS)
    await killed.kill()
    where = other ?? (await start('one'))
    await doomed.stop()

    const all = async () => {
      const found: ShownRun[] = []
      for (let cursor = ''; ; ) {
        const path = `/v1/admin/runs?limit=1000${cursor}`
        const { body } = await where.call<ShownRun[]>(undefined, 'GET', path)
        found.push(...body)
        if (body.length < 1_000) return found
        cursor = `&cursor=${body.at(-1)?.id}`
      }
    }
    const deadline = performance.now() + 10 * INTERVAL_MS + 60_000
    let runs = await all()
    const left = () => runs.filter(({ id, state }) => state === 'running' && dead.includes(id)).length
    while (left() > 0 && performance.now() < deadline) {
      await sleep(1_000)
      runs = await all()
    }
    // As long again: whatever would end the healthy has had its time.
    await sleep(4 * INTERVAL_MS)
    runs = await all()
    await living.stop()

    expect(living.refused).toEqual([])
    const byId = new Map(runs.map((run) => [run.id, run]))
    expect(healthy.filter((id) => byId.get(id)?.state !== 'running')).toEqual([])
    for (const id of dead) {
      const { state, reason, last_beat, ended_at } = byId.get(id) ?? {}
      expect([state, reason]).toEqual(['ended', 'missed_heartbeat'])
      expect(Date.parse(ended_at ?? '') - Date.parse(last_beat ?? '')).toBeGreaterThanOrEqual(3 * INTERVAL_MS)
    }
    const statusOf = async (run: string) => {
      const path = `/v1/admin/tokens/${issued.get(run)}`
      return (await where.call<{ status: string }>(undefined, 'GET', path)).body.status
    }
    for (const run of issued.keys())
      expect(await statusOf(run)).toBe(dead.includes(run) ? 'revoked' : 'active')
  },
)

const AWAY = {
  heartbeatMs: 3_000,
  /** Longer than all that a run may miss. */
  ms: 13_000,
  /**
   * Clients beat again late in the interval that each run then gets, not in its first moment: after two of the three seconds, and
   * the half interval that a beat may take to be written, so that a machine that stops for a second ends none.
   */
  beatAfterMs: 2_000,
}

test.each([
  ['the server is frozen', 'sqlite'],
  ['the server is frozen', 'postgres'],
  ['the store is away', 'postgres'],
] as const)(
  'while %s no run can beat: none of the healthy ends, all of the dead end (%s)',
  { timeout: 180_000 },
  async (what, dialect) => {
    const own = what === 'the store is away' ? await startOwnPostgres() : undefined
    const { start } = await nodes(dialect, own === undefined ? undefined : async () => own)
    const server = await start('one')
    const { body: agent } = await server.call<{ token: string }>(undefined, 'POST', '/v1/admin/agents', {
      name: 'fleet',
      scopes: ['orders'],
    })
    const ids: string[] = []
    await forAll(Array.from({ length: 40 }), async () => {
      const { body } = await server.call<{ id: string }>(agent.token, 'POST', '/v1/runs', {
        heartbeat: `${AWAY.heartbeatMs}ms`,
      })
      ids.push(body.id)
    })
    const [dead, healthy] = [ids.slice(0, 10), ids.slice(10)]
    const all = beating(agent.token, ids, () => server, AWAY.heartbeatMs)
    await sleep(AWAY.heartbeatMs + 1_000)
    await all.stop()
    if (own === undefined) server.signal('SIGSTOP')
    else await own.halt()
    await sleep(AWAY.ms)
    if (own === undefined) server.signal('SIGCONT')
    else await own.resume()
    await sleep(AWAY.beatAfterMs)
    const living = beating(agent.token, healthy, () => server, AWAY.heartbeatMs)

    const states = async () => {
      const { status, body } = await server.call<ShownRun[]>(undefined, 'GET', '/v1/admin/runs?limit=1000')
      return status === 200 ? new Map(body.map(({ id, state }) => [id, state])) : undefined
    }
    await poll('the end of the dead', async () => {
      const found = await states()
      return found !== undefined && dead.every((id) => found.get(id) === 'ended')
    })
    // As long again: whatever would end the healthy has had its time.
    await sleep(4 * AWAY.heartbeatMs)
    const found = await states()
    await living.stop()
    expect(living.refused).toEqual([])
    expect(healthy.filter((id) => found?.get(id) !== 'running')).toEqual([])
  },
)
