import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { must } from '../support/fault-world.ts'
import { LONG } from '../support/long.ts'
import {
  type EndsWorld,
  type HeldRun,
  INTERVAL_MS,
  openEndsWorld,
  UPSTREAMS,
  type Upstream,
} from '../support/run-ends-world.ts'
import { poll } from '../support/server-process.ts'

/**
 * How long a credential works after the cause of its end, at real upstreams, for somebody who holds on to it: who stays logged in
 * with statements that do not end, and logs in every few milliseconds.
 *
 * The table of docs/explanation/performance.md: `MAYFLY_LONG=1 npx vitest run test/real/run-ends.test.ts`.
 */
const ROUNDS = LONG ? 10 : 1
const LASTS = { timeout: 120_000 * ROUNDS }
/** Where the server is told: the sweeper goes about twice a second. Noticing takes three intervals, even from the last beat. */
const TOLD_MS = 3 * INTERVAL_MS - 100
/** Until a command whose run was ended elsewhere is gone: it learns that with its next beat, and otherwise never. */
const STOPPED_MS = 8 * INTERVAL_MS
/** Where it has to notice, counted from the first beat that it misses. */
const MISSED_MS = 5_000
/** Longer than a run lives in silence: a server that did not wait for the beats of the living would end them all. */
const OUTAGE_MS = 4_500

interface Row {
  readonly cause: string
  /** Of each upstream, ms after the cause. */
  readonly after: Readonly<Record<Upstream, number>>
  /** Ms after the first missed beat, the last upstream. */
  readonly missed?: number
}

const table: Row[] = []
let ends: EndsWorld
let runs: HeldRun[] = []

beforeAll(async () => {
  ends = await openEndsWorld()
})
afterEach(async () => {
  ends.network?.mend()
  await Promise.all(runs.map((run) => run.clear()))
  runs = []
})
afterAll(async () => {
  await ends?.close()
  print()
})

async function hold(wish: Parameters<EndsWorld['run']>[0] = {}): Promise<HeldRun> {
  const run = await ends.run(wish)
  runs.push(run)
  return run
}

/** Until each upstream refuses it, in ms after `causedAt`. */
async function after(run: HeldRun, causedAt: number): Promise<Record<Upstream, number>> {
  const refused = await run.refused()
  const all = UPSTREAMS.map((upstream) => [upstream, refused[upstream].at - causedAt] as const)
  return Object.fromEntries(all) as Record<Upstream, number>
}

const most = (row: Row['after']) => Math.max(...Object.values(row))
const endedBy = async (run: HeldRun) => {
  const { state, reason } = await run.shown()
  return [state, reason]
}

/** Ways to end of which the command or the administrator tells the server. */
const TOLD: Readonly<Record<string, { reason: string; cause(run: HeldRun): unknown }>> = {
  'the command exits': {
    reason: 'completed',
    cause: ({ command }) => command.child.stdin?.write('\n'),
  },
  'SIGTERM to `mayfly run`': {
    reason: 'completed',
    cause: ({ command }) => command.child.kill('SIGTERM'),
  },
  'SIGKILL of the command': {
    reason: 'completed',
    cause: ({ child }) => process.kill(child, 'SIGKILL'),
  },
  'an administrator ends the run': {
    reason: 'ended_by',
    cause: async (run) => {
      const { id } = await run.shown()
      await must(ends.world.server(), undefined, 'DELETE', `/v1/admin/runs/${id}`)
    },
  },
}

test.each(Object.keys(TOLD))('refused at once: %s', LASTS, async (cause) => {
  const way = TOLD[cause]
  for (let round = 0; round < ROUNDS; round += 1) {
    const run = await hold()
    for (const holder of run.holders) holder.insist()
    const causedAt = Date.now()
    await way?.cause(run)
    const row = { cause, after: await after(run, causedAt) }
    table.push(row)
    expect(most(row.after)).toBeLessThan(TOLD_MS)
    await run.command.ended
    expect(Date.now() - causedAt).toBeLessThan(STOPPED_MS)
    expect(await endedBy(run)).toEqual(['ended', way?.reason])
  }
})

/** Measures a run that is silent since `causedAt`, and checks that it ended for that, and no earlier than it may. */
async function silent(cause: string, run: HeldRun, causedAt: number): Promise<Row> {
  const at = await after(run, causedAt)
  const { last_beat, ended_at } = await run.shown()
  expect(await endedBy(run)).toEqual(['ended', 'missed_heartbeat'])
  const lastBeat = Date.parse(last_beat)
  expect(Date.parse(ended_at ?? '') - lastBeat).toBeGreaterThanOrEqual(3 * INTERVAL_MS)
  const row = { cause, after: at, missed: most(at) + causedAt - (lastBeat + INTERVAL_MS) }
  table.push(row)
  return row
}

/** So that the cause comes somewhere between two beats, after some of them. */
const live = () => sleep(INTERVAL_MS * (1 + Math.random()))

test('refused within five seconds of the missed beat: SIGKILL of `mayfly run`', LASTS, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const run = await hold()
    await live()
    const causedAt = Date.now()
    run.command.child.kill('SIGKILL')
    const { missed } = await silent('SIGKILL of `mayfly run`', run, causedAt)
    expect(missed).toBeLessThan(MISSED_MS)
    // What it started lived on all the time, with the credentials in its environment.
    expect(await readFile(`/proc/${run.child}/cmdline`, 'utf8')).toMatch(/^sh\0/)
  }
})

test('refused within five seconds of the missed beat: the network is cut', LASTS, async ({ skip }) => {
  const { network } = ends
  if (network === undefined) return skip('a network to cut takes root on Linux, with ip and nsenter')
  for (let round = 0; round < ROUNDS; round += 1) {
    const run = await hold({ by: network.by })
    await live()
    const causedAt = Date.now()
    network.cut()
    const { missed } = await silent('the network is cut', run, causedAt)
    expect(missed).toBeLessThan(MISSED_MS)
    // Connected again, the command learns that its run has ended, and stops what it runs.
    network.mend()
    expect((await run.command.ended).stderr).toContain('the server heard no heartbeat of it')
    expect(() => process.kill(run.child, 0)).toThrow('ESRCH')
  }
})

test('a server that is killed ends the dead after its start, and none of the living', LASTS, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const [living, dead] = await Promise.all([hold(), hold()])
    await live()
    await ends.world.server().kill()
    dead.command.child.kill('SIGKILL')
    await sleep(OUTAGE_MS)
    await Promise.all([...living.holders, ...dead.holders].map((holder) => holder.mustBeIn()))

    await ends.start()
    const startedAt = Date.now()
    const at = await after(dead, startedAt)
    table.push({ cause: 'SIGKILL of the server and `mayfly run`: after the start', after: at })
    expect(most(at)).toBeLessThan(MISSED_MS)
    expect(await endedBy(dead)).toEqual(['ended', 'missed_heartbeat'])

    // As long as it would take to end the other, too.
    await sleep(startedAt + MISSED_MS - Date.now())
    await Promise.all(living.holders.map((holder) => holder.mustBeIn()))
    expect((await living.shown()).state).toBe('running')
    const causedAt = Date.now()
    living.command.child.stdin?.write('\n')
    const row = {
      cause: 'the command exits, the server was killed before',
      after: await after(living, causedAt),
    }
    table.push(row)
    expect(most(row.after)).toBeLessThan(TOLD_MS)
    expect(await living.command.ended).toMatchObject({ code: 0 })
    await poll('its end', async () => (await living.shown()).reason === 'completed')
  }
})

/** Median and most of each cell, in seconds, as a table of Markdown. */
function print(): void {
  const text = (values: readonly number[]) => {
    const sorted = values.toSorted((one, other) => one - other)
    const seconds = (ms: number | undefined) => ((ms ?? 0) / 1_000).toFixed(2)
    const [middle, last] = [sorted[sorted.length >> 1], sorted.at(-1)]
    return sorted.length === 0 ? '' : LONG ? `${seconds(middle)} (${seconds(last)})` : seconds(last)
  }
  const causes = [...new Set(table.map(({ cause }) => cause))]
  const lines = causes.map((cause) => {
    const rows = table.filter((row) => row.cause === cause)
    const cells = UPSTREAMS.map((upstream) => text(rows.map(({ after }) => after[upstream])))
    const missed = text(rows.flatMap(({ missed }) => (missed === undefined ? [] : [missed])))
    return `| ${[cause, ...cells, missed].join(' | ')} |`
  })
  const head = ['cause', ...UPSTREAMS, 'after the first missed beat']
  console.log(
    [
      'Seconds until the upstream refuses:',
      `| ${head.join(' | ')} |`,
      `| ${head.map(() => '---').join(' | ')} |`,
      ...lines,
    ].join('\n'),
  )
}
