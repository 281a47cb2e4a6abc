import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { newRequest } from '../../test/contract/open-kind.ts'
import { createTestHost } from '../../test/support/host.ts'
import { pluginKind } from '../../test/support/plugin.ts'
import { bundlePlugin, parrot } from '../../test/support/plugin-artefact.ts'
import { openRedisBench, type RedisBench } from '../../test/support/redis-kind.ts'
import { alternate, burstOf, summaryOf } from '../bursts.ts'
import { createLatencyHistogram, quantilesOf } from '../latency.ts'
import { type Burst, type Loader, startLoader } from '../loader.ts'
import { median } from '../median.ts'
import { onExit, temporaryDirectory } from '../processes.ts'
import { atLeast, atMost, type Row } from '../report.ts'
import { record } from '../request.ts'
import type { Bench, Scenario } from '../scenario.ts'
import { mainOf, type OurServer, startOurs } from '../server.ts'

const SHARE = 0.5
const CALL_MS = 1
const GOAL_CLIENTS = 8
/** The kind, and the same code as a plugin (test/support/plugins). */
const KINDS = ['redis', 'redis-plugin'] as const

/** What the boundary between Mayfly and a plugin costs. */
export const plugin: Scenario = {
  name: 'plugin',
  title: 'The kind redis, built in and as a plugin',
  async run(bench) {
    const redis = await openRedisBench()
    onExit(redis.close)
    const dataDir = temporaryDirectory(bench.directory)
    const server = await startOurs({ ...bench, dataDir })
    await addPlugin(bench, dataDir)
    for (const type of KINDS)
      await server.admin('POST', '/v1/admin/backends', { type, name: type, config: redis.settings })
    const loader = startLoader()
    const rows: Row[] = []
    for (const clients of bench.kind.clients)
      rows.push(await issueRow(bench, { redis, server, loader, clients }))
    await server.stop()
    rows.push(await callRow(bench))
    return rows
  },
}

async function addPlugin(bench: Bench, dataDir: string): Promise<void> {
  const file = join(temporaryDirectory(bench.directory), 'redis-plugin.mjs')
  await writeFile(file, await bundlePlugin('redis-plugin.ts'))
  const line = [mainOf(bench.checkout), 'plugin', 'add', file, '--data-dir', dataDir]
  await promisify(execFile)(process.execPath, line)
}

interface Parts {
  readonly redis: RedisBench
  readonly server: OurServer
  readonly loader: Loader
  readonly clients: number
}

/** Bursts of issuing through both backends, which alternate. */
async function issueRow(bench: Bench, parts: Parts): Promise<Row> {
  const { clients } = parts
  const pairs: { ours: Burst; reference: Burst }[] = []
  for (let n = 0; n < bench.pace.pairs; n += 1) {
    const burst = (kind: string) => () => burstAs(bench, parts, kind, n)
    pairs.push(await alternate(n, burst('redis-plugin'), burst('redis')))
  }
  const builtIn = summaryOf(pairs.map(({ reference }) => reference))
  const ratios = pairs.map(({ ours, reference }) => ours.perSecond / reference.perSecond)
  const ratio = median(ratios)
  const row: Row = {
    scenario: 'Issue, redis as a plugin',
    clients,
    figures: summaryOf(pairs.map(({ ours }) => ours)),
    comparedWith: `built in: ${builtIn.perSecond.toFixed(0)}/s, p50 ${builtIn.p50.toFixed(2)}, p99 ${builtIn.p99.toFixed(2)} ms`,
    ratio,
    goal: clients === GOAL_CLIENTS ? atLeast(ratio, SHARE) : undefined,
    detail: { ratios, builtIn },
  }
  bench.say(`${row.scenario}, ${clients} clients: ${row.comparedWith}, ratio ${ratio.toFixed(3)}`)
  return row
}

/** Its accounts are all gone at the end: their number would change what comes next. */
async function burstAs(bench: Bench, parts: Parts, kind: string, n: number): Promise<Burst> {
  const { redis, server, loader, clients } = parts
  const name = `${kind}-${clients}-${n}`
  const { token } = await server.admin<{ token: string }>('POST', '/v1/admin/agents', {
    name,
    scopes: [`${kind}:*`],
  })
  const json = { backend: kind, ttl: '12h', scopes: ['read:shop:*'] }
  const ask = { method: 'POST', path: '/api/v1/credentials', bearer: token, json } as const
  const target = { pid: server.pid, port: server.port, asks: [ask], status: 201 }
  const burst = await burstOf(loader, target, clients, {
    warmMs: 500,
    burstMs: bench.quick ? 1_000 : 5_000,
  })
  await record({ method: 'DELETE', path: `/v1/admin/agents/${name}` }, server.port)
  while (((await redis.call('ACL', 'USERS')) as string[]).some((user) => user.startsWith('mf_')))
    await pause(100)
  return burst
}

/** One call after the other, of a plugin that answers at once: the boundary and nothing else. */
async function callRow(bench: Bench): Promise<Row> {
  const folder = temporaryDirectory(bench.directory)
  const entry = join(folder, 'parrot.mjs')
  await writeFile(entry, await parrot())
  const kind = await pluginKind({ runtime: 'node', entry, folder, close: async () => undefined })
  const backend = await kind.open({ says: 'hello', password: 'none' }, createTestHost('bench').host)
  const histogram = createLatencyHistogram()
  const { signal } = new AbortController()
  try {
    for (let n = 0; n < (bench.quick ? 500 : 5_000); n += 1) {
      const request = newRequest(['say:hello'])
      const from = performance.now()
      await backend.issue(request, signal)
      // Until V8 has compiled both sides.
      if (n >= 200) histogram.record(Math.max(1, Math.round((performance.now() - from) * 1_000)))
    }
  } finally {
    await backend[Symbol.asyncDispose]()
  }
  const figures = quantilesOf(histogram)
  bench.say(`one call to a plugin: p50 ${figures.p50.toFixed(2)}, p99 ${figures.p99.toFixed(2)} ms`)
  return {
    scenario: 'One call to a plugin',
    clients: 1,
    figures,
    comparedWith: `${CALL_MS} ms`,
    ratio: figures.p50 / CALL_MS,
    goal: atMost(figures.p50 / CALL_MS, 1),
  }
}
