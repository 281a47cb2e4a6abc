import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SPANS } from '../../src/domain/activity.ts'
import { openStore } from '../../src/store/open.ts'
import { columnNames } from '../../src/store/schema/columns.ts'
import { startServerProcess } from '../support/server-process.ts'
import { auditRow, newBody } from '../support/store.ts'

const directory = mkdtempSync(join(tmpdir(), 'mayfly-activity-kill-'))
const dataDir = join(directory, 'data')
let db: DatabaseSync
beforeAll(async () => {
  await (await openStore({ directory: dataDir })).close()
})
afterAll(() => {
  db?.close()
  rmSync(directory, { recursive: true })
})

const ENTRIES = 24_000
const KILLS = 2

/** As of a version that counted nothing. */
function addEntries(): void {
  const start = Date.now() - 3_600_000
  const columns = columnNames('audit')
  const insert = db.prepare(
    `INSERT INTO audit (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
  )
  db.exec('PRAGMA synchronous = OFF; BEGIN')
  for (let n = 0; n < ENTRIES; n += 1) {
    const row: Record<string, string | number | null> = {
      ...auditRow({ id: newBody(start + Math.floor(n / 20)), backend: `b${n % 7}` }),
    }
    insert.run(...columns.map((column) => row[column] ?? null))
  }
  db.exec('COMMIT')
}

function startAnew(): void {
  db.exec("DELETE FROM audit; DELETE FROM activity; DELETE FROM meta WHERE key = 'activity'")
  addEntries()
}

const number = (sql: string) => Number(db.prepare(sql).get()?.['n'])
const counted = () => number(`SELECT coalesce(sum(count), 0) AS n FROM activity WHERE span = ${SPANS[0]}`)

test('a server that is killed in the middle of counting counts each entry once', async () => {
  db = new DatabaseSync(join(dataDir, 'mayfly.db'), { timeout: 60_000 })
  addEntries()
  for (let kills = 0; kills < KILLS; ) {
    const before = counted()
    const server = await startServerProcess({ dataDir })
    await expect.poll(counted, { interval: 10 }).toBeGreaterThan(before)
    await server.kill()
    if (counted() < ENTRIES) kills += 1
    // This process stood still, and the server counted all meanwhile.
    else startAnew()
  }
  const server = await startServerProcess({ dataDir })
  const left = "SELECT count(*) AS n FROM audit WHERE id > (SELECT value FROM meta WHERE key = 'activity')"
  await expect.poll(() => number(left)).toBe(0)
  await server.terminate()
  const behind = "SELECT count(*) AS n FROM audit WHERE id <= (SELECT value FROM meta WHERE key = 'activity')"
  expect(number(behind)).toBeGreaterThanOrEqual(ENTRIES)
  for (const span of SPANS)
    expect(number(`SELECT sum(count) AS n FROM activity WHERE span = ${span}`)).toBe(number(behind))
  const groups = `SELECT count(*) AS n FROM (SELECT backend, action, sum(count) AS counted FROM activity WHERE span = ${SPANS[0]} GROUP BY backend, action) AS a
    WHERE counted <> (SELECT count(*) FROM audit WHERE audit.backend = a.backend AND audit.action = a.action AND id <= (SELECT value FROM meta WHERE key = 'activity'))`
  expect(number(groups)).toBe(0)
}, 180_000)
