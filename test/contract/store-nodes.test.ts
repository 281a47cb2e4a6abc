import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Change, Step } from '../../src/store/engine/change.ts'
import { openPostgres } from '../../src/store/postgres/engine.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { startPostgresScript } from '../support/postgres-script.ts'
import { agentRow, auditRow, credentialRow, openTestStore, T0, type TestStore } from '../support/store.ts'

const by = { actor: 'local', ipAddress: null, userAgent: null, authMethod: null, requestId: null }
const insertAgent = (row: ReturnType<typeof agentRow>): Step => ({ op: 'insert', table: 'agents', row })

function issue(agentId: string, state = 'active', version = 1): Change {
  const row = credentialRow({ agent_id: agentId, state })
  return [
    { op: 'guard', table: 'agents', id: agentId, version },
    { op: 'insert', table: 'credentials', row },
    { op: 'insert', table: 'audit', row: auditRow({ credential_id: row.id, agent_id: agentId }) },
  ]
}

describe('two nodes on one PostgreSQL', () => {
  let a: TestStore
  let b: TestStore
  beforeAll(async () => {
    a = await openTestStore('postgres')
    b = await a.another()
  })
  afterAll(async () => {
    await b.close()
    await a.close()
  })

  test('B refuses an agent that A has ended, and no longer caches it', async () => {
    for (let round = 0; round < 30; round += 1) {
      const agent = agentRow()
      await a.store.commit([insertAgent(agent)])
      expect(await b.store.commit(issue(agent.id))).toEqual({ done: true })
      const before = await b.store.generation()
      // A node that is being asked all the time must not be answered from a query that began too early.
      const asking = Promise.all(Array.from({ length: 20 }, () => b.store.generation()))
      await a.store.commit(a.store.agents.end(agent.id, 'deleted', T0))
      expect(await b.store.generation()).toBeGreaterThan(before)
      expect(await b.store.commit(issue(agent.id))).toEqual({ done: false, step: 0, reason: 'guard' })
      await asking
    }
  })

  test('an agent that is ended while many are issued to it keeps none of them', async () => {
    for (let round = 0; round < 12; round += 1) {
      const agent = agentRow()
      await a.store.commit([insertAgent(agent)])
      const issuing = Array.from({ length: 120 }, (_, n) =>
        (n % 2 === 0 ? a : b).store.commit(issue(agent.id)),
      )
      const now = T0 + round
      const ending = (round % 2 === 0 ? a : b).store.commit([
        ...a.store.agents.end(agent.id, 'deleted', now),
        ...a.store.credentials.endAll({ agentId: agent.id }, 'agent_deleted', now, by),
      ])
      const later = Array.from({ length: 120 }, (_, n) => (n % 2 === 0 ? b : a).store.commit(issue(agent.id)))
      expect(await ending).toEqual({ done: true })
      const outcomes = await Promise.all([...issuing, ...later])
      expect(await a.store.credentials.countLiving(agent.id, 1_000)).toBe(0)
      const kept = outcomes.filter((one) => one.done).length
      const entries = await a.store.audit.query({ agentId: agent.id }, 1_000)
      expect(entries.filter((one) => one.action === 'credential.issued')).toHaveLength(kept)
      expect(entries.filter((one) => one.action === 'credential.revoked')).toHaveLength(kept)
      expect(outcomes.filter((one) => !one.done && one.reason !== 'guard')).toEqual([])
    }
  })

  test('only one node claims a due credential', async () => {
    const rows = Array.from({ length: 40 }, () => credentialRow({ backend_uid: 'be_shared', due_at: T0 }))
    await a.store.commit(rows.map((row): Step => ({ op: 'insert', table: 'credentials', row })))
    const taken = await Promise.all(
      [a, b, a, b].map((node) => node.store.credentials.takeDue('be_shared', T0, T0 + 30_000, 10)),
    )
    expect(taken.map((some) => some.length)).toEqual([10, 10, 10, 10])
    expect(new Set(taken.flat().map((row) => row.id)).size).toBe(40)
    expect(await b.store.credentials.takeDue('be_shared', T0, T0 + 30_000, 10)).toEqual([])
    expect(await b.store.credentials.takeDue('be_shared', T0 + 30_000, T0 + 60_000, 100)).toHaveLength(40)
  })

  test('an expired credential is ended once, by either node', async () => {
    const rows = Array.from({ length: 40 }, () =>
      credentialRow({ backend_uid: 'be_out', revocation: 'none', handle: null, due_at: T0 }),
    )
    await a.store.commit(rows.map((row): Step => ({ op: 'insert', table: 'credentials', row })))
    const sweep = async (node: TestStore) => {
      const { credentials } = node.store
      for (let ids = await credentials.expired('be_out', T0, 7); ids.length > 0; ) {
        await node.store.commit(credentials.expireAll(ids, T0 + 1, by))
        ids = await credentials.expired('be_out', T0, 7)
      }
    }
    await Promise.all([sweep(a), sweep(b), sweep(a), sweep(b)])
    for (const row of rows) {
      expect(await a.store.audit.query({ credentialId: row.id }, 9)).toHaveLength(1)
      expect(await b.store.credentials.find(row.id)).toMatchObject({ state: 'expired', dueAt: null })
    }
  })

  test('no statement is compiled before it is run', async () => {
    expect(await a.engine.prepare('SHOW jit')([])).toEqual([{ jit: 'off' }])
  })

  test('many reads wait for no write and hold none up', async () => {
    const slow = a.engine.prepare('SELECT pg_sleep(1.5)')
    let read = 0
    const reading = Array.from({ length: 8 }, () => slow([]).then(() => (read += 1)))
    await a.store.generation()
    await a.store.commit([{ op: 'insert', table: 'audit', row: auditRow() }])
    expect(read).toBe(0)
    await Promise.all(reading)
  })
})

describe('PostgreSQL that fails', () => {
  let server: TestPostgres
  let database: TestDatabase
  let admin: pg.Client
  beforeAll(async () => {
    server = await startPostgres()
    database = await server.createDatabase()
    admin = new pg.Client(database.url)
    await admin.connect()
  })
  afterAll(async () => {
    await admin.end()
    await database.drop()
    await server.stop()
  })

  const endSessions = () =>
    admin.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'mayfly %'",
    )

  test('connections that are cut while changes are under way: kept is what was acknowledged', async () => {
    const engine = await openPostgres({ url: database.url })
    const entries = Array.from({ length: 1_500 }, () => auditRow())
    const working = entries.map(async (row, n): Promise<boolean | undefined> => {
      const extra: Step[] = n % 3 === 0 ? [{ op: 'invalidate' }] : []
      // Spread over the cuts, and not all in one batch.
      for (let wait = 0; wait < n % 40; wait += 1)
        await Promise.resolve(engine.generation()).catch(() => undefined)
      return engine.commit([{ op: 'insert', table: 'audit', row }, ...extra]).then(
        (outcome) => outcome.done,
        () => undefined,
      )
    })
    for (let cut = 0; cut < 12; cut += 1) await endSessions()
    const answers = await Promise.all(working)
    const found = await admin.query('SELECT id FROM audit')
    const kept = new Set(found.rows.map((row: { id: string }) => row.id))
    for (const [n, answer] of answers.entries()) expect(kept.has(entries[n]?.id ?? '')).toBe(answer === true)
    expect(kept.size).toBe(found.rows.length)
    expect(answers.filter((one) => one === true).length).toBeGreaterThan(0)
    await engine.close()
  })

  test('a lost COMMIT is found by its audit entry; without one it is not acknowledged', async () => {
    let isArmed = false
    const proxy = await startPostgresProxy(server, undefined, 0, (answer) => {
      if (!isArmed || !answer.includes('COMMIT\0')) return answer
      isArmed = false
      proxy.interrupt((client) => client.destroy())
      return Buffer.alloc(0)
    })
    const url = new URL(database.url)
    url.port = String(proxy.port)
    const engine = await openPostgres({ url: url.href })
    const proof = (id: string): Step => ({
      op: 'insert',
      table: 'used_proofs',
      row: { id, expires_at: T0 },
    })
    const entry = auditRow()
    isArmed = true
    const witnessed: Change = [{ op: 'invalidate' }, proof('a'), { op: 'insert', table: 'audit', row: entry }]
    expect(await engine.commit(witnessed)).toEqual({ done: true })
    isArmed = true
    await expect(engine.commit([{ op: 'invalidate' }, proof('b')])).rejects.toMatchObject({
      detail: 'the database cannot be reached',
    })
    const found = await admin.query("SELECT id FROM used_proofs WHERE id IN ('a', 'b') ORDER BY id")
    expect(found.rows).toEqual([{ id: 'a' }, { id: 'b' }])
    await engine.close()
    await proxy.close()
  })

  test('trouble ends by itself when the database takes writes again', async () => {
    const engine = await openPostgres({ url: database.url })
    const commit = () => engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }])
    await admin.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
    await endSessions()
    await expect(commit()).rejects.toMatchObject({ detail: 'the database cannot be written' })
    expect(engine.trouble()).toBe('the database cannot be written')
    await admin.query(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`)
    await endSessions()
    await expect.poll(() => engine.trouble()).toBeUndefined()
    expect(await commit()).toEqual({ done: true })
    await engine.close()
  })

  test('a database that stops answering is trouble long before its queries time out', async () => {
    let isSilent = false
    const { hostname: host, port } = new URL(database.url)
    const proxy = await startPostgresProxy({ host, port: Number(port) }, undefined, 0, (answer) =>
      isSilent ? Buffer.alloc(0) : answer,
    )
    const through = new URL(database.url)
    through.hostname = '127.0.0.1'
    through.port = String(proxy.port)
    const engine = await openPostgres({ url: through.href })
    expect(engine.trouble()).toBeUndefined()
    isSilent = true
    await expect.poll(() => engine.trouble(), { timeout: 9_000 }).toBe('the database does not answer')
    await proxy.close()
    await engine.close()
  })

  test('a session that was opened while nothing could be written is not used again', async () => {
    const engine = await openPostgres({ url: database.url })
    /** Of both sorts, on all lanes at once. */
    const commitMany = () =>
      Promise.allSettled(
        Array.from({ length: 24 }, (_, n) => {
          const extra: Step[] = n % 2 === 0 ? [{ op: 'invalidate' }] : []
          return engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }, ...extra])
        }),
      )
    await admin.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
    await endSessions()
    for (const { status } of await commitMany()) expect(status).toBe('rejected')
    await admin.query(`ALTER DATABASE ${database.name} RESET default_transaction_read_only`)
    for (const one of await commitMany()) expect(one).toEqual({ status: 'fulfilled', value: { done: true } })
    expect(engine.trouble()).toBeUndefined()
    await engine.close()
  })

  test('a server that answers before the disk does is refused', async () => {
    await admin.query(`ALTER DATABASE ${database.name} SET synchronous_commit = off`)
    await expect(openPostgres({ url: database.url })).rejects.toThrow('synchronous_commit=off')
    await admin.query(`ALTER DATABASE ${database.name} RESET synchronous_commit`)
  })

  test('refuses a server older than PostgreSQL 15', async () => {
    const version = Buffer.from(String(server.version))
    const aged = await startPostgresProxy(server, undefined, 0, (answer) => {
      const at = answer.indexOf(version)
      if (at >= 0) answer.write('140025', at)
      return answer
    })
    const url = new URL(database.url)
    url.port = String(aged.port)
    await expect(openPostgres({ url: url.href })).rejects.toThrow(
      'runs PostgreSQL 14, and Mayfly needs 15 or later',
    )
    await aged.close()
  })

  test('a pooler is refused: one that takes no time-outs, and one that gives sessions a number of its own', async () => {
    // As pgbouncer does without and with ignore_startup_parameters.
    const refusing = await startPostgresScript((socket) => {
      const fields = 'SFATAL\0C08P01\0Munsupported startup parameter: statement_timeout\0\0'
      const head = Buffer.alloc(5, 'E')
      head.writeInt32BE(4 + fields.length, 1)
      socket.end(Buffer.concat([head, Buffer.from(fields)]))
    })
    const BACKEND_KEY_DATA = Buffer.from('K\0\0\0\x0c', 'latin1')
    const numbering = await startPostgresProxy(server, undefined, 0, (answer) => {
      const at = answer.indexOf(BACKEND_KEY_DATA)
      if (at >= 0) answer.writeInt32BE(1_456_761_187, at + BACKEND_KEY_DATA.length)
      return answer
    })
    for (const { port } of [refusing, numbering]) {
      const url = new URL(database.url)
      url.port = String(port)
      await expect(openPostgres({ url: url.href })).rejects.toThrow('leads to a connection pooler')
    }
    refusing.close()
    await numbering.close()
  })

  test('nodes that start at once on an empty database all start', async () => {
    const empty = await server.createDatabase()
    const engines = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ url: empty.url })))
    await Promise.all(engines.map((engine) => engine.close()))
    await empty.drop()
  })
})
