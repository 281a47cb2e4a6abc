import { freshDatabase } from './postgres.ts'
import { temporaryDirectory } from './processes.ts'
import type { Bench } from './scenario.ts'
import {
  type Content,
  createDice,
  credentialAt,
  entryAt,
  extraAgents,
  fill,
  type Known,
  timeOf,
  type Where,
} from './seed.ts'
import { BACKEND, type OurServer, startOurs } from './server.ts'

export interface LargeStore extends Where {
  readonly title: 'SQLite' | 'PostgreSQL'
  readonly content: Content
  /** When it was filled, epoch ms. */
  readonly now: number
  /** Bearer tokens of active agents; the first may read the whole audit log. */
  readonly tokens: readonly string[]
}

export interface Amounts {
  /** Ten unless given. */
  readonly backends?: number
  readonly agents: number
  readonly entries: number
  readonly credentials: number
}

const LOGINS = 64

/** A new store with these amounts. The server creates the agents and backends of the load, `fill` the rest. */
export async function largeStore(
  bench: Bench,
  title: LargeStore['title'],
  amounts: Amounts,
): Promise<LargeStore> {
  const dataDir = temporaryDirectory(bench.directory)
  const databaseUrl = title === 'PostgreSQL' ? await freshDatabase(bench.say) : undefined
  const server = await startOurs({ checkout: bench.checkout, dataDir, databaseUrl })
  const backends = await makeBackends(server, amounts.backends ?? 10)
  const logins = await makeLogins(server)
  await server.stop()
  const now = Date.now()
  const extra = extraAgents(Math.max(0, amounts.agents - LOGINS), now)
  const content = {
    backends: await withUids({ dataDir, databaseUrl }, backends),
    agents: [...logins, ...extra],
  }
  const began = performance.now()
  await fill(
    { dataDir, databaseUrl },
    {
      agents: extra,
      credentials: credentials(content, amounts.credentials, now),
      audit: entries(content, amounts.entries, now),
    },
  )
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  bench.say(`${title}: ${amounts.entries} entries and ${amounts.credentials} credentials in ${seconds} s`)
  return { title, dataDir, databaseUrl, content, now, tokens: logins.map((one) => one.token) }
}

function* credentials(content: Content, count: number, now: number) {
  const dice = createDice()
  for (let n = 0; n < count; n += 1) yield credentialAt(content, n, count, now, dice)
}

function* entries(content: Content, count: number, now: number) {
  const dice = createDice()
  const actions = createDice()
  for (let n = 0; n < count; n += 1) {
    const about = credentialAt(content, n, count, now, dice)
    yield entryAt(about, n, count, now, actions, content.agents.slice(1, 6))
  }
}

/** The id of the n-th credential. */
export function credentialIdAt(n: number, count: number, now: number): string {
  const unnamed = [{ id: '', name: '' }]
  return credentialAt({ agents: unnamed, backends: unnamed }, n, count, now, createDice()).id
}

export function halfWay(count: number, now: number): string {
  return new Date(timeOf(count / 2, count, now)).toISOString()
}

async function makeBackends(server: OurServer, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, n) => (n === 0 ? BACKEND : `${BACKEND}-${n}`))
  for (const name of names) {
    const config = { audience: `https://${name}.example` }
    await server.admin('POST', '/v1/admin/backends', { type: 'jwt', name, config })
  }
  return names
}

async function makeLogins(server: OurServer): Promise<(Known & { token: string })[]> {
  const made = []
  for (let n = 0; n < LOGINS; n += 1) {
    const scopes = [`${BACKEND}:*`, `${BACKEND}-1:*`, ...(n === 0 ? ['admin:audit:read'] : [])]
    const body = { name: `bench-${n}`, scopes }
    made.push(await server.admin<Known & { token: string }>('POST', '/v1/admin/agents', body))
  }
  return made
}

/** Adds the ids, which the API does not show. */
async function withUids(where: Where, names: readonly string[]): Promise<Known[]> {
  const { openStore } = await import('../src/store/open.ts')
  const store = await openStore({ directory: where.dataDir, databaseUrl: where.databaseUrl })
  const rows = await store.backends.listOpen()
  await store.close()
  return names.map((name) => ({ name, id: rows.find((row) => row.name === name)!.uid }))
}
