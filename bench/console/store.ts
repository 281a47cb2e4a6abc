import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SPANS } from '../../src/domain/activity.ts'
import { fetchJson } from '../request.ts'
import type { Bench } from '../scenario.ts'
import { fill, loggedIn } from '../seed.ts'
import { BACKEND, type OurServer, type ServerOptions, startOurs } from '../server.ts'
import { type LargeStore, largeStore } from '../stores.ts'

const OPERATORS = 40
const POLICIES = 20
/** Agents that ask for more scopes, twice each. */
const ASKING = 15

/** A store in which every room of the console has much to show. A tenth of the credentials are live. */
export async function consoleStore(bench: Bench): Promise<LargeStore> {
  const [entries, credentials] = bench.quick ? [100_000, 10_000] : [10_000_000, 1_000_000]
  const store = await largeStore(bench, 'SQLite', { agents: 200, backends: 40, entries, credentials })
  await complete(bench, store)
  return store
}

/** Adds the people, and the counts of what happened. */
export async function complete(bench: Bench, store: LargeStore): Promise<void> {
  await fill(store, { ...loggedIn(OPERATORS, 2, store.now) })
  const began = performance.now()
  countActivity(store)
  bench.say(`the activity was counted in ${((performance.now() - began) / 1_000).toFixed(1)} s`)
}

/** What the job of the server would count in minutes. */
function countActivity({ dataDir }: LargeStore): void {
  const db = new DatabaseSync(join(dataDir, 'mayfly.db'))
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN; DELETE FROM activity')
  let source = 'SELECT at, backend, action, 1 AS count FROM audit'
  for (const span of SPANS) {
    db.exec(`INSERT INTO activity (span, at, backend, action, count)
      SELECT ${span}, at - at % ${span}, backend, action, sum(count) FROM (${source}) GROUP BY 2, 3, 4`)
    source = `SELECT at, backend, action, count FROM activity WHERE span = ${span}`
  }
  db.exec("INSERT OR REPLACE INTO meta (key, value) SELECT 'activity', max(id) FROM audit")
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** What a server needs to serve it. */
export function serverOf(bench: Bench, { dataDir }: LargeStore): ServerOptions {
  const file = join(dataDir, 'bench.yaml')
  const policies = Array.from({ length: POLICIES }, (_, n) => ({
    name: `policy-${n}`,
    pattern: `ci-${n}-*`,
    scopes: [`${BACKEND}:*`],
  }))
  // JSON is YAML, too.
  writeFileSync(file, JSON.stringify({ policies }))
  return { ...bench, dataDir, environment: { MAYFLY_CONFIG: file } }
}

export const startConsole = (bench: Bench, store: LargeStore): Promise<OurServer> =>
  startOurs(serverOf(bench, store))

/** Fills the inbox. */
export async function askForMore({ tokens }: LargeStore, { port }: OurServer): Promise<void> {
  for (const bearer of tokens.slice(1, 1 + ASKING))
    for (const scope of ['reports:read', 'orders:write'])
      await fetchJson(
        {
          method: 'POST',
          path: '/v1/request',
          bearer,
          json: { scopes: [`${BACKEND}-2:${scope}`], reason: 'a job' },
        },
        port,
      )
}
