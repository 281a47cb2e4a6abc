import { randomBytes } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createSealer, parseMasterKeys } from '../../src/keys/seal.ts'
import { startApp } from '../support/app.ts'
import { newMasterKey } from '../support/master-key.ts'
import { startPostgres } from '../support/postgres.ts'
import { startServerProcess } from '../support/server-process.ts'
import { runCli, startWorld, type World } from './support.ts'

let world: World
let keyFile: string
beforeAll(async () => {
  world = await startWorld()
  keyFile = join(world.app.directory, 'master.key')
})
afterAll(() => world.close())

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(world.home, 'b-'))
})

const cli = (...argv: string[]) => runCli(argv, { env: world.bareEnv, cwd: folder })
const backUp = (file = 'backup.db') => cli('backup', file, '--data-dir', world.app.directory)
const restore = (directory: string, key = keyFile) =>
  cli('restore', 'backup.db', '--data-dir', directory, '--master-key-file', key)

test('the master key that the server makes is for its owner to read alone (0400)', async () => {
  expect((await stat(keyFile)).mode & 0o777).toBe(0o400)
})

test('backs up a server that runs and writes, and restores it with its agents', async () => {
  let isOver = false
  const issued: string[] = []
  const writing = (async () => {
    while (!isOver) {
      const { body } = await world.agent.client.post('/api/v1/credentials', { backend: 'demo' })
      issued.push(body.id)
    }
  })()
  const umask = process.umask(0)
  const end = await backUp().finally(() => process.umask(umask))
  isOver = true
  await writing
  expect(end).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(
      new RegExp(
        `^Backed up ${world.app.directory} to ${folder}/backup\\.db: \\d+ agents?, \\d+\\.\\d MiB\\.\\n` +
          `The master key is not part of it, and the backup is worthless without it\\. Keep ${keyFile} in another place\\.\\n$`,
      ),
    ),
  })
  expect(await readdir(folder)).toEqual(['backup.db'])
  expect((await stat(join(folder, 'backup.db'))).mode & 0o777).toBe(0o600)
  const key = (await readFile(keyFile, 'utf8')).trim().slice(2)
  expect((await readFile(join(folder, 'backup.db'))).includes(key)).toBe(false)

  // A new machine: the key comes from its own place.
  const dataDir = join(folder, 'data')
  await mkdir(dataDir, { mode: 0o700 })
  await copyFile(keyFile, join(dataDir, 'master.key'))
  const restored = await cli('restore', 'backup.db', '--data-dir', dataDir)
  expect(restored).toMatchObject({ code: 0, stdout: '' })
  expect(restored.stderr).toMatch(
    /^Restored .* into .*: \d+ agents?, .*\nThe master key is not part of a backup: /,
  )
  expect((await stat(join(dataDir, 'mayfly.db'))).mode & 0o777).toBe(0o600)
  const server = await startServerProcess({ dataDir })
  try {
    const status = await server.call(world.agent.token, 'GET', '/v1/status')
    expect([status.status, status.body['name']]).toEqual([200, world.agent.name])
    const running = await cli('restore', 'backup.db', '--data-dir', dataDir)
    expect(running).toMatchObject({ code: 1, stdout: '' })
    expect(running.stderr).toMatch(/^mayfly: another process is using .*Stop the other process/)
  } finally {
    await server.terminate()
  }
  const second = await cli('restore', 'backup.db', '--data-dir', dataDir)
  expect([second.code, second.stderr]).toEqual([
    1,
    expect.stringMatching(
      /data is not empty: it holds mayfly\.db.* run: mkdir -m 700 .*data\.old && mv .*mayfly\.db\*/,
    ),
  ])
})

test('moves a store from SQLite to PostgreSQL', async () => {
  expect((await backUp()).code).toBe(0)
  const postgres = await startPostgres()
  const database = await postgres.createDatabase()
  try {
    const env = { ...world.bareEnv, MAYFLY_DATABASE_URL: database.url, MAYFLY_MASTER_KEY_FILE: keyFile }
    const argv = ['restore', 'backup.db', '--data-dir', join(folder, 'node')]
    const end = await runCli(argv, { env, cwd: folder })
    expect(end).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/into the database of database_url: \d/),
    })
    expect(await readdir(join(folder, 'node'))).toEqual([])
    const moved = await startApp({ databaseUrl: database.url, masterKeyFile: keyFile })
    try {
      const { body } = await moved.as(world.agent.token).get('/v1/status')
      expect(body).toMatchObject({ id: world.agent.id, scopes: world.agent.scopes })
      const issued = await moved.as(world.agent.token).post('/api/v1/credentials', { backend: 'demo' })
      expect(issued.status).toBe(201)
      const entries = async (app: typeof moved) =>
        (await app.admin('GET', '/v1/admin/audit?action=agent.created&limit=1000')).body.map(
          ({ id }: { id: string }) => id,
        )
      expect(await entries(moved)).toEqual(await entries(world.app))
    } finally {
      await moved.close()
    }
    expect(await runCli(argv, { env, cwd: folder })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/already holds a Mayfly store.*createdb NAME/),
    })
    expect(await runCli(['backup', 'x.db'], { env, cwd: folder })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/in PostgreSQL.*pg_dump --format=custom --file=.*x\.db "\$DATABASE_URL"/),
    })
  } finally {
    await database.drop()
    await postgres.stop()
  }
})

describe('backup refuses', () => {
  test('to overwrite a file', async () => {
    await writeFile(join(folder, 'backup.db'), 'mine')
    expect(await backUp()).toMatchObject({ code: 1, stderr: expect.stringMatching(/exists already/) })
    expect(await readFile(join(folder, 'backup.db'), 'utf8')).toBe('mine')
  })

  test('a directory without a store', async () => {
    const end = await cli('backup', 'x.db', '--data-dir', folder)
    expect([end.code, end.stderr]).toEqual([
      1,
      expect.stringMatching(/no store: .*mayfly\.db does not exist/),
    ])
    expect(await readdir(folder)).toEqual([])
  })

  test('a place where it cannot write, in one line', async () => {
    const end = await backUp('none/backup.db')
    expect([end.code, end.stderr]).toEqual([
      1,
      expect.stringMatching(/^mayfly: .*no such file or directory\.\n$/),
    ])
  })

  test('a wrong configuration, with every fault', async () => {
    await writeFile(join(folder, 'm.yaml'), 'listn: x\nretention: 1\n')
    const end = await cli('backup', 'x.db', '--config', 'm.yaml')
    expect([end.code, end.stderr]).toEqual([2, expect.stringMatching(/m\.yaml:1:1: .*\n.*m\.yaml:2:/)])
  })
})

describe('restore refuses, and leaves nothing behind,', () => {
  test.each<[string, () => Promise<unknown>, RegExp]>([
    [
      'a wrong master key',
      () => writeFile(join(folder, 'key'), newMasterKey(), { mode: 0o600 }),
      /sealed with another master key.*--master-key-file/,
    ],
    [
      'an older master key alone, which opens nothing that was sealed since',
      async () => {
        const [old = ''] = (await readFile(keyFile, 'utf8')).split('\n')
        const newer = newMasterKey(2)
        const file = new DatabaseSync(join(folder, 'backup.db'))
        const [both, before] = [
          createSealer(parseMasterKeys(`${old}\n${newer}`)),
          createSealer(parseMasterKeys(old)),
        ]
        const { value } = file.prepare("SELECT value FROM meta WHERE key = 'hash_key'").get() as {
          value: string
        }
        const hashKey = both.seal(
          'meta',
          'hash_key',
          'value',
          before.open('meta', 'hash_key', 'value', value),
        )
        const set = file.prepare('UPDATE meta SET value = ? WHERE key = ?')
        set.run(hashKey, 'hash_key')
        set.run(both.keyCheck(), 'key_check')
        file.close()
        await writeFile(join(folder, 'key'), `${old}\n`, { mode: 0o600 })
      },
      /sealed with another master key.*--master-key-file/,
    ],
    [
      'a backup with a trigger',
      async () => {
        await copyFile(keyFile, join(folder, 'key'))
        const file = new DatabaseSync(join(folder, 'backup.db'))
        file.exec("CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE agents SET scopes = '[]'; END")
        file.close()
      },
      /another schema than a Mayfly store, so somebody has changed it \(trigger t of audit\)\. Use another backup/,
    ],
    ['no master key', () => Promise.resolve(), /the master key is missing/],
    [
      'a file that is no backup',
      async () => {
        await writeFile(join(folder, 'key'), newMasterKey(), { mode: 0o600 })
        await writeFile(join(folder, 'backup.db'), randomBytes(9_000))
      },
      /backup\.db is damaged or is not a SQLite database.*Use another backup/,
    ],
    [
      'a plain copy of a running store',
      async () => {
        await copyFile(keyFile, join(folder, 'key'))
        for (const end of ['', '-wal'])
          await copyFile(join(world.app.directory, `mayfly.db${end}`), join(folder, `backup.db${end}`))
      },
      /backup\.db-wal lies beside the file.*mayfly backup/,
    ],
  ])('%s', async (_, prepare, message) => {
    expect((await backUp()).code).toBe(0)
    await prepare()
    const dataDir = join(folder, 'data')
    const end = await restore(dataDir, join(folder, 'key'))
    expect([end.code === 0, end.stdout, end.stderr]).toEqual([false, '', expect.stringMatching(message)])
    expect(end.stderr.trim().split('\n')).toHaveLength(1)
    const left = await readdir(dataDir).catch(() => [])
    expect(left.filter((name) => name !== 'mayfly.lock')).toEqual([])
  })

  test('a directory that holds other files', async () => {
    expect((await backUp()).code).toBe(0)
    const end = await restore(folder)
    expect([end.code, end.stderr]).toEqual([
      1,
      expect.stringMatching(/is not empty: it holds .*Choose another directory/),
    ])
  })
})
