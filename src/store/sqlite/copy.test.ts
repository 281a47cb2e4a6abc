import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { MIGRATIONS } from '../schema/migrate.ts'
import { checkCopy, copyStore, endLogins, openForCopy, requireOwnSchema } from './copy.ts'
import { openFile } from './file.ts'

let folder: string
let source: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-copy-'))
  source = join(folder, 'mayfly.db')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const KEY_CHECK = "INSERT INTO meta VALUES ('key_check', 'c1'), ('hash_key', 's1')"

/** A store of this many MiB that a server has open. */
async function startStore(mib: number): Promise<DatabaseSync> {
  const { db } = await openFile(source)
  db.exec(KEY_CHECK)
  const add = db.prepare('INSERT INTO meta VALUES (?, ?)')
  for (let n = 0; n < mib; n += 1) add.run(`big ${n}`, 'x'.repeat(1024 * 1024))
  return db
}

test('is the state of one moment, and ends, while a server writes after each step of it', async () => {
  const db = await startStore(16)
  const target = join(folder, 'copy.db')
  await writeFile(target, '', { mode: 0o600 })
  const shares: number[] = []
  await copyStore(openForCopy(source), target, (share) => {
    shares.push(share)
    if (shares.length > 100) throw new Error('the copy began again and again')
    db.prepare('INSERT INTO meta VALUES (?, ?)').run(`later ${shares.length}`, 'y'.repeat(5_000_000))
  })
  expect(shares.length).toBeGreaterThan(2)
  expect(shares.toSorted()).toEqual(shares)
  expect(checkCopy(target, 'it')).toEqual({ agents: 0, keyCheck: 'c1', hashKey: 's1' })
  const copy = new DatabaseSync(target, { readOnly: true })
  const count = (like: string) => copy.prepare('SELECT count(*) AS n FROM meta WHERE key LIKE ?').get(like)
  expect([count('big %'), count('later %')]).toEqual([{ n: 16 }, { n: 0 }])
  copy.close()
  db.close()
  // One file, without a journal that a copy of it could miss.
  expect((await readdir(folder)).filter((name) => name.startsWith('copy'))).toEqual(['copy.db'])
  expect((await stat(target)).mode & 0o777).toBe(0o600)
})

test.each<[string, (db: DatabaseSync) => void, RegExp]>([
  ['an empty database', () => {}, /^it is not a backup of a Mayfly store$/],
  ['a newer schema', (db) => db.exec('PRAGMA user_version = 9999'), /has schema 9999, .* newer Mayfly/],
  [
    'a store without a key',
    (db) => db.exec('CREATE TABLE meta (key, value); PRAGMA user_version = 1'),
    /never started/,
  ],
])('refuses %s', async (_, make, message) => {
  const db = new DatabaseSync(source)
  make(db)
  db.close()
  expect(() => checkCopy(source, 'it')).toThrow(message)
})

test('refuses a file that is no database, and one with a damaged page', async () => {
  await writeFile(source, 'no database'.repeat(200))
  expect(() => checkCopy(source, 'it')).toThrow(/^it is damaged or is not a SQLite database/)
  await rm(source)
  const db = await startStore(1)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const file = new DatabaseSync(source)
  const { page } = file.prepare("SELECT rootpage AS page FROM sqlite_schema WHERE name = 'audit'").get() as {
    page: number
  }
  const { page_size: size } = file.prepare('PRAGMA page_size').get() as { page_size: number }
  file.close()
  const { open } = await import('node:fs/promises')
  const handle = await open(source, 'r+')
  await handle.write(Buffer.alloc(size, 0x5a), 0, size, (page - 1) * size)
  await handle.close()
  expect(() => checkCopy(source, 'it')).toThrow(/^it is damaged/)
})

test.each<[string, string | undefined]>([
  [
    'a trigger',
    'CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE agents SET scopes = \'["admin:*"]\'; END',
  ],
  ['a view', 'CREATE VIEW v AS SELECT * FROM agents'],
  ['a table', 'CREATE TABLE extra (a)'],
  ['an index', 'CREATE INDEX extra ON agents (name)'],
  ['a column', "ALTER TABLE agents ADD COLUMN extra text DEFAULT 'x'"],
  ['a view in place of a table', 'DROP TABLE used_proofs; CREATE VIEW used_proofs AS SELECT * FROM meta'],
  ['a lost index', 'DROP INDEX agents_bearer'],
  ['what statistics leave, which is no change', undefined],
])('a restore takes only the schema of its migrations: %s', (_, change) => {
  // Of the newest version, and of one before it.
  for (const version of [MIGRATIONS.length, MIGRATIONS.length - 1]) {
    const file = join(folder, `changed-${version}.db`)
    const db = new DatabaseSync(file)
    for (const { statements } of MIGRATIONS.slice(0, version)) db.exec(statements('sqlite').join(';\n'))
    db.exec(`PRAGMA user_version = ${version}; ANALYZE`)
    if (change !== undefined) db.exec(change)
    db.close()
    const check = () => requireOwnSchema(file, 'it')
    if (change === undefined) expect(check).not.toThrow()
    else expect(check).toThrow(/^it has another schema than a Mayfly store/)
  }
})

test('a restore ends the sessions, links, challenges and logins under way of people, and keeps operators, passkeys and what agents have', async () => {
  const rows = {
    operators: "'op_1', 'a@b.c', 'A', '[]', '[]', 1, 0, 1, 'local', NULL, NULL, NULL, NULL, NULL, NULL",
    passkeys: "'pk_1', 'op_1', 'c', 'n', 'k', 0, 'none', '[]', 'r', 1, NULL",
    sessions:
      "'ses_1', 'op_1', 's', 'k', 'link', NULL, 1, 1, 1, 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    login_links: "'h', 'invitation', 'op_1', 1, 'local', 9",
    challenges: "'c', 'confirm', 'ses_1', 'n', 1, 9, NULL",
    command_logins:
      "'h', 'device', 'u', 'waiting', 'laptop', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5000, 1, 9",
    logins: "'j', 'ag_1', 9, NULL",
    trusts: "'identity:ci', 1",
  }
  const { db } = await openFile(source)
  for (const [table, row] of Object.entries(rows)) db.exec(`INSERT INTO ${table} VALUES (${row})`)
  endLogins(source)
  const left = Object.keys(rows).map((table) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
  expect(left).toEqual([1, 1, 0, 0, 0, 0, 1, 1])
  db.close()
  const older = join(folder, 'older.db')
  new DatabaseSync(older).close()
  expect(() => endLogins(older)).not.toThrow()
})
