import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPrograms } from '../../../test/support/needed-programs.ts'
import { type Bench, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { postgres } from './kind.ts'
import { scramVerifier } from './scram.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.sql('CREATE TABLE orders (id int)')
})
afterAll(() => bench?.close())

const role = () => `mf_${request([]).credentialId.slice('cred_'.length)}`

describe('the functions', () => {
  it('create only roles of credentials, with a verifier, in groups of this login', async () => {
    const mayfly = await bench.setUp()
    const other = await bench.setUp({ schemas: ['public', 'other'] })
    const verifier = await scramVerifier('x', 256)
    const groupOf = async ({ username }: { username: string }) =>
      String((await bench.sql('SELECT name FROM mayfly.groups WHERE login = $1', [username]))[0]?.['name'])
    const [own, foreign] = [await groupOf(mayfly), await groupOf(other)]
    const client = new pg.Client({
      host: bench.server.host,
      port: bench.server.port,
      database: bench.database.name,
      user: mayfly.username,
      password: mayfly.password,
    })
    await client.connect()
    const issue = (...values: unknown[]) =>
      client.query('SELECT mayfly.issue($1, $2, $3, $4)', values).then(
        () => 'issued',
        (error: { code: string }) => error.code,
      )
    const until = new Date(Date.now() + 60_000)
    for (const name of [
      'postgres',
      'mf_',
      'mf_x"; DROP TABLE orders; --',
      `${role()}x`,
      `x${role()}`,
      `${role()}\n`,
    ]) {
      expect(await issue(name, verifier, until, [own])).toBe('22023')
    }
    for (const text of [
      '',
      'password',
      'md5d41d8cd98f00b204e9800998ecf8427e',
      `${verifier}'`,
      `${verifier}\n`,
    ]) {
      expect(await issue(role(), text, until, [own])).toBe('22023')
    }
    for (const groups of [[foreign], [own, 'pg_read_all_data'], ['postgres'], [null], [own, '']]) {
      expect(await issue(role(), verifier, until, groups)).toBe('42501')
    }
    expect(await issue(role(), verifier, null, [own])).toBe('22023')
    const made = role()
    expect(await issue(made, verifier, until, [own])).toBe('issued')
    for (const text of [
      "SELECT mayfly.revoke('postgres')",
      `SELECT mayfly.disown('${mayfly.username}')`,
      `SELECT mayfly.refresh('{${own},${foreign}}')`,
      'SELECT * FROM mayfly.groups',
      'SELECT * FROM public.orders',
      `SET ROLE ${made}`,
      `GRANT ${own} TO CURRENT_USER`,
      'CREATE ROLE mine',
    ]) {
      await expect(client.query(text)).rejects.toMatchObject({
        code: expect.stringMatching(/^(42501|22023)$/),
      })
    }
    await client.end()
    const backend = await bench.open(mayfly)
    await backend.revoke?.({ username: made }, signal())
  })

  it('list the roles of credentials, by the page', async () => {
    const backend = await bench.open(await bench.setUp())
    const issued = await backend.issue(request(['*']), signal())
    const list = async (after: string, limit: number) =>
      JSON.parse(String((await bench.sql('SELECT mayfly.list($1, $2) AS l', [after, limit]))[0]?.['l']))
    const name = String(issued.fields?.['username'])
    const all = await list('', 1_000)
    expect(all.map((one: { name: string }) => one.name)).toContain(name)
    expect(await list(name.slice(0, -1), 1)).toEqual([{ name, until: expect.any(String) }])
    await backend.revoke?.(issued.handle ?? {}, signal())
  })
})

it('names the database in which the functions are missing', async () => {
  const other = await bench.createDatabase()
  const overrides = { databases: [bench.database.name, other.name] }
  const login = await bench.setUp(overrides)
  await bench.sql('DROP SCHEMA mayfly CASCADE', [], other.name)
  const backend = await bench.open({ ...login, ...overrides })
  await expect(backend.issue(request([`${other.name}:read`]), signal())).rejects.toMatchObject({
    fault: 'misconfigured',
    message: expect.stringContaining(`the database "${other.name}". Run the script`),
  })
})

describe('the script', () => {
  const psql = (script: string) =>
    promisify(execFile)('bash', ['-c', 'psql -X -q -v ON_ERROR_STOP=1 "$URL" <<<"$SCRIPT"'], {
      env: { ...process.env, URL: bench.database.url, SCRIPT: script },
    })

  it.skipIf(!hasPrograms('psql'))(
    'runs in psql, twice, with hostile names, and takes everything away again',
    async () => {
      const database = `m'"\\ %s :x é ${Date.now()}`
      const login = await bench.createRole('', `l'"\\ ${Date.now()}`)
      await bench.sql(`CREATE DATABASE ${pg.escapeIdentifier(database)}`)
      const settings = bench.settings({ ...login, database, schemas: [`s"'; \\`], grant: 'read-write' })
      await bench.sql(`CREATE SCHEMA ${pg.escapeIdentifier(`s"'; \\`)}`, [], database)
      await psql(postgres.setup?.install(settings) ?? '')
      await psql(postgres.setup?.install(settings) ?? '')
      const backend = await bench.open(settings)
      expect(await backend.check(signal())).not.toContainEqual(expect.stringContaining('CREATEROLE'))
      const issued = await backend.issue(request(['*']), signal())
      const uninstall = postgres.setup?.uninstall(settings) ?? ''
      await expect(psql(uninstall)).rejects.toThrow('revoke them first')
      await backend.revoke?.(issued.handle ?? {}, signal())
      await backend[Symbol.asyncDispose]()
      // Other tests have credentials on this server: without the look at them.
      await psql(uninstall.replace(/^DO 'BEGIN IF EXISTS .*$/m, ''))
      expect(await bench.sql("SELECT FROM pg_namespace WHERE nspname = 'mayfly'", [], database)).toEqual([])
      await bench.sql(`DROP DATABASE ${pg.escapeIdentifier(database)} WITH (FORCE)`)
    },
  )

  it('refuses names with a line break', () => {
    for (const name of ['a\nb', 'a\rb']) {
      expect(() => postgres.setup?.install(bench.settings({ database: name }))).toThrow(RangeError)
      expect(() => postgres.setup?.install(bench.settings({ username: name }))).toThrow(RangeError)
    }
  })
})
