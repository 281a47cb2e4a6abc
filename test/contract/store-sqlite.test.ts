import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/store/engine/engine.ts'
import { openSqlite } from '../../src/store/sqlite/engine.ts'
import { agentRow, auditRow, idempotencyRow } from '../support/store.ts'

describe('the SQLite file', () => {
  let directory: string
  const open: Engine[] = []
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'mayfly-sqlite-')), 'data')
  })
  afterEach(async () => {
    for (const engine of open.splice(0)) await engine.close()
    await rm(join(directory, '..'), { recursive: true })
  })
  async function start(): Promise<Engine> {
    const engine = await openSqlite({ directory })
    open.push(engine)
    return engine
  }
  const value = async (engine: Engine, sql: string) =>
    Object.values((await engine.prepare<Record<string, unknown>>(sql)([]))[0] ?? {})[0]

  test('a second process on the same directory is told why it cannot start', async () => {
    await start()
    const child = fileURLToPath(new URL('../fault/store-child.ts', import.meta.url))
    const second = promisify(execFile)(process.execPath, [child, directory])
    await expect(second).rejects.toThrow('only one Mayfly can use a data directory')
    await expect(openSqlite({ directory })).rejects.toThrow('only one Mayfly can use a data directory')
  })

  test('warns when the clock is behind the newest record', async () => {
    const first = await start()
    const at = Date.now() + 3_600_000
    await first.commit([{ op: 'insert', table: 'audit', row: auditRow({ at }) }])
    await first.close()
    open.length = 0
    const told: string[] = []
    const onTrouble = (what: string, error: unknown) => told.push(`${what}: ${error}`)
    const second = await openSqlite({ directory, onTrouble })
    open.push(second)
    expect(told).toEqual([expect.stringMatching(/^the system clock is behind .*: behind by 3[56]\d\d s$/)])
    expect(second.now()).toBeGreaterThanOrEqual(at)
    expect(second.trouble()).toBeUndefined()
  })

  /** The size of the file in KiB, after 3,000 rows and after bulk changes have deleted them. */
  async function sizesAroundPrune(): Promise<readonly [full: number, pruned: number]> {
    const file = join(directory, 'mayfly.db')
    const size = async () => {
      const db = new DatabaseSync(file)
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      db.close()
      return (await stat(file)).size / 1_024
    }
    const first = await start()
    const rows = Array.from({ length: 3_000 }, (_, n) =>
      idempotencyRow({ key_hash: `key ${String(n).padStart(4, '0')}`, reply: 'x'.repeat(3_000) }),
    )
    await Promise.all(rows.map((row) => first.commit([{ op: 'insert', table: 'idempotency', row }])))
    await first.close()
    const full = await size()
    const second = await start()
    const sql = 'DELETE FROM idempotency WHERE key_hash IN (SELECT key_hash FROM idempotency LIMIT 100)'
    for (let n = 0; n < 30; n += 1)
      await second.commit([{ op: 'run', sql, params: [], rows: 100 }], { bulk: true })
    expect(await value(second, 'SELECT count(*) FROM idempotency')).toBe(0)
    expect(await value(second, 'PRAGMA integrity_check')).toBe('ok')
    await second.close()
    open.length = 0
    return [full, await size()]
  }

  test('the file becomes smaller when bulk changes delete what is in it', async () => {
    const [full, pruned] = await sizesAroundPrune()
    expect(full).toBeGreaterThan(12_000)
    expect(pruned).toBeLessThan(2_000)
  })

  test('a file from before that works as well, and keeps its size', async () => {
    await mkdir(directory, { mode: 0o700 })
    const old = new DatabaseSync(join(directory, 'mayfly.db'))
    old.exec('CREATE TABLE one (a); DROP TABLE one')
    old.close()
    const [full, pruned] = await sizesAroundPrune()
    expect(pruned).toBeGreaterThanOrEqual(full)
  })

  test('an erased value is neither in a backup of the running store nor in the files after a start', async () => {
    const engine = await start()
    const marker = 'SEALED-VALUE'
    // Some fill a part of a page, and some are so long that erasing them frees whole pages.
    const rows = Array.from({ length: 200 }, (_, n) =>
      idempotencyRow({ key_hash: `key ${n}`, reply: marker.repeat(n % 2 === 0 ? 20 : 2_000) }),
    )
    for (const row of rows) await engine.commit([{ op: 'insert', table: 'idempotency', row }])
    const file = join(directory, 'mayfly.db')
    const traces = async (path: string) => (await readFile(path)).toString('latin1').split(marker).length - 1
    const copy = async (name: string) => {
      const reader = new DatabaseSync(file, { readOnly: true })
      await backup(reader, join(directory, name))
      reader.close()
      return traces(join(directory, name))
    }
    expect(await copy('before')).toBeGreaterThan(1_000)
    const erase = (sql: string) => engine.commit([{ op: 'run', sql, params: [], rows: 'any' }])
    await erase("UPDATE idempotency SET reply = NULL WHERE key_hash < 'key 5'")
    await erase('DELETE FROM idempotency WHERE reply IS NOT NULL')
    expect(await copy('after')).toBe(0)
    // The journal holds old pages until a start empties it into the file.
    await engine.close()
    open.length = 0
    await start()
    for (const name of ['mayfly.db', 'mayfly.db-wal']) expect(await traces(join(directory, name))).toBe(0)
  })

  test('keeps committed changes across a reopen, and the clock continues from them', async () => {
    const first = await start()
    const ahead = Date.now() + 60_000
    const agent = agentRow()
    const change = [
      { op: 'insert', table: 'agents', row: agent },
      { op: 'insert', table: 'audit', row: auditRow({ at: ahead, id: '7zzzzzzzzzzzzzzzzzzzzzzzzz' }) },
    ] as const
    expect(await first.commit(change)).toEqual({ done: true })
    await first.close()
    const second = await start()
    expect(await second.read(second.build.selectFrom('agents').selectAll())).toEqual([agent])
    expect(second.now()).toBeGreaterThanOrEqual(ahead)
    expect(second.now()).toBeLessThan(ahead + 10_000)
  })

  test('every acknowledged change is synced: journal and sync mode are as they must be', async () => {
    const engine = await start()
    expect(await value(engine, 'PRAGMA journal_mode')).toBe('wal')
    expect(await value(engine, 'PRAGMA synchronous')).toBe(2)
    expect(await value(engine, 'PRAGMA foreign_keys')).toBe(1)
  })

  test('bulk changes go in batches of their own, which alternate with those that callers wait for', async () => {
    const engine = await start()
    const order: string[] = []
    const put = async (name: string, bulk: boolean) => {
      await engine.commit([{ op: 'insert', table: 'meta', row: { key: name, value: '' } }], { bulk })
      order.push(name)
    }
    await Promise.all([
      put('bulk 1', true),
      put('bulk 2', true),
      put('bulk 3', true),
      put('a', false),
      put('b', false),
    ])
    expect(order).toEqual(['bulk 1', 'a', 'b', 'bulk 2', 'bulk 3'])
    expect(engine.stats).toMatchObject({ commits: 4, changes: 5 })
    const last = Promise.all([put('bulk 4', true), put('c', false), put('bulk 5', true)])
    await engine.close()
    await last
    expect(order.toSorted().slice(-1)).toEqual(['c'])
    expect(order).toHaveLength(8)
  })

  test('every file is private to the account, whatever the umask', async () => {
    const umask = process.umask(0)
    try {
      const engine = await start()
      await engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }])
      const names = await readdir(directory)
      expect(names.toSorted()).toEqual([
        'ballast',
        'mayfly.db',
        'mayfly.db-shm',
        'mayfly.db-wal',
        'mayfly.lock',
      ])
      for (const name of names) expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600)
      expect((await stat(directory)).mode & 0o777).toBe(0o700)
    } finally {
      process.umask(umask)
    }
  })

  test('few changes go together, many without waiting for the turn to end', async () => {
    const engine = await start()
    const put = (count: number) =>
      Promise.all(
        Array.from({ length: count }, () =>
          engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }]),
        ),
      )
    await put(31)
    expect(engine.stats).toEqual({ commits: 1, changes: 31, largestBatch: 31 })
    await put(70)
    expect(engine.stats).toEqual({ commits: 4, changes: 101, largestBatch: 32 })
  })

  test('changes that arrive together share a commit, and too many are turned away', async () => {
    const engine = await start()
    const commits = Array.from({ length: 5_000 }, () =>
      engine.commit([{ op: 'insert', table: 'audit', row: auditRow() }]),
    )
    const answers = await Promise.allSettled(commits)
    // Two batches of 32 went to the writer at once; 4,096 waited.
    expect(answers.filter((one) => one.status === 'fulfilled')).toHaveLength(4_160)
    expect(answers.at(-1)).toMatchObject({ reason: { detail: 'too many changes are waiting' } })
    expect(engine.stats).toEqual({ commits: 18, changes: 4_160, largestBatch: 256 })
  })

  test('refuses a database of a newer version and leaves it unchanged', async () => {
    await (await start()).close()
    const db = new DatabaseSync(join(directory, 'mayfly.db'))
    db.exec('PRAGMA user_version = 99')
    db.close()
    await expect(openSqlite({ directory })).rejects.toThrow('run a newer Mayfly')
    // It has also let go of the file.
    const again = new DatabaseSync(join(directory, 'mayfly.db'))
    again.exec('PRAGMA user_version = 1')
    again.close()
  })
})
