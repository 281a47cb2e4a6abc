import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { expect, test } from 'vitest'
import { reapAgents } from '../../src/core/agents/reap-agents.ts'
import { expireEnrollments } from '../../src/core/enrollments/expire-enrollments.ts'
import { DAY_MS } from '../../src/domain/limits.ts'
import { createPrune } from '../../src/jobs/prune.ts'
import { tidy } from '../../src/jobs/tidy.ts'
import { COLUMNS } from '../../src/store/schema/columns.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { inline, platform } from '../support/identity-tokens.ts'
import { entry, exchange, ISSUER, signer, template, workload } from '../support/keyless.ts'

const RETENTION_MS = 7 * DAY_MS
const JOBS = 30
const AGENTS = 30
const ENTRIES = [entry('jobs', { agent: template('ci-{run_id}'), scopes: ['orders'], agentTtlMs: 60_000 })]
const PLATFORMS = [
  platform('acme', {
    keys: inline(signer),
    scopes: [{ claim: 'role', value: 'reader', scopes: ['orders:read'] }],
  }),
]

/** Rows of each table, but for those whose number does not depend on agents. */
async function countRows({ directory, databaseUrl }: TestApp): Promise<Record<string, number>> {
  const tables = Object.keys(COLUMNS).filter((name) => name !== 'meta' && name !== 'activity')
  const sql = tables.map((name) => `SELECT '${name}' AS name, count(*) AS n FROM ${name}`).join(' UNION ALL ')
  let rows: { name: string; n: unknown }[]
  if (databaseUrl === undefined) {
    const file = new DatabaseSync(join(directory, 'mayfly.db'), { readOnly: true })
    rows = file.prepare(sql).all() as typeof rows
    file.close()
  } else {
    const client = new pg.Client({ connectionString: databaseUrl })
    await client.connect()
    rows = (await client.query(sql)).rows
    await client.end()
  }
  return Object.fromEntries(rows.map(({ name, n }) => [name, Number(n)]))
}

async function runJobs({ core }: TestApp): Promise<void> {
  const { signal } = new AbortController()
  await core.lastUse.flush()
  await reapAgents(core, signal)
  await expireEnrollments(core, core.store.now())
  while (await tidy(core));
  const prune = createPrune(core, RETENTION_MS)
  while (await prune(signal));
}

test.each(['sqlite', 'postgres'] as const)(
  'agents without secrets leave nothing after the retention, on %s',
  async (dialect) => {
    const app = await startApp({ dialect })
    try {
      await app.newBackend({ name: 'orders' })
      app.core.identities.setTrusted({ identities: ENTRIES, platforms: PLATFORMS })
      app.advance(2 * RETENTION_MS)
      await runJobs(app)
      const before = await countRows(app)
      const comeIn = async (claims: Record<string, unknown>) => {
        const { status, body } = await exchange(app, workload(app, claims))
        expect(status).toBe(200)
        return app.as(body.access_token)
      }
      for (let n = 0; n < JOBS; n += 1) {
        const job = await comeIn({ iss: ISSUER, run_id: `${n}` })
        expect((await job.post('/v1/credentials/orders', { ttl: '1m' })).status).toBe(200)
        if (n % 3 === 0) await job.get('/v1/signing-key')
        if (n % 2 === 0) expect((await job.delete('/v1/login')).status).toBe(204)
      }
      const { issuer: iss } = PLATFORMS[0] ?? { issuer: '' }
      for (let n = 0; n < AGENTS; n += 1)
        await comeIn({ iss, sub: `agent-${n}`, ...(n % 3 === 0 ? { role: 'reader' } : {}) })
      const pending = (await app.local.get('/v1/admin/pending?limit=1000')).body
      expect(pending).toHaveLength(AGENTS - AGENTS / 3)
      await app.local.post(`/v1/admin/pending/${pending[0].id}/approve`, { scopes: ['orders'] })
      await app.local.post(`/v1/admin/pending/${pending[1].id}/reject`)
      const most = await countRows(app)
      for (const table of [
        'agents',
        'enrollments',
        'logins',
        'used_proofs',
        'audit',
        'credentials',
        'signing_keys',
      ])
        expect(most[table], table).toBeGreaterThan(before[table] ?? 0)
      // A month for those with rights, then the retention.
      for (const days of [2, 30, 1]) {
        app.advance(days * DAY_MS)
        await app.sweep()
        await runJobs(app)
      }
      app.advance(RETENTION_MS + DAY_MS)
      await runJobs(app)
      expect(await countRows(app)).toEqual(before)
    } finally {
      await app.close()
    }
  },
)
