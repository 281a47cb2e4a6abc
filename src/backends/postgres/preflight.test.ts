import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bench, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import type { Config } from './config.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.sql('CREATE SCHEMA closed; CREATE TABLE closed.t (id int)')
})
afterAll(() => bench?.close())

async function refusal(overrides: Partial<Config>): Promise<BackendError> {
  const backend = await bench.open(overrides)
  const error = await backend.check(signal()).catch((caught: unknown) => caught)
  if (!(error instanceof BackendError)) throw new Error('expected a BackendError')
  return error
}

describe('the check of a configuration', () => {
  it('changes nothing', async () => {
    const look = () =>
      bench.sql(
        `SELECT (SELECT count(*) FROM pg_roles WHERE rolname LIKE '%${bench.uid.slice(3)}%') AS roles,
                (SELECT count(*) FROM pg_shdepend WHERE dbid = d.oid) AS grants, d.datacl
           FROM pg_database d WHERE datname = current_database()`,
      )
    const before = await look()
    await (await bench.open()).check(signal())
    await expect((await bench.open({ schemas: ['none'] })).check(signal())).rejects.toThrow()
    expect(await look()).toEqual(before)
  })

  it('warns of a superuser, of CREATEROLE, and not of the functions', async () => {
    const plain = await bench.createRole('CREATEROLE')
    await bench.sql(`GRANT USAGE ON SCHEMA public TO "${plain.username}" WITH GRANT OPTION`)
    const warningsOf = async (who: Partial<Config>) =>
      (await (await bench.open(who)).check(signal())).filter((text) => !text.includes('never asked'))
    expect(await warningsOf(plain)).toEqual([expect.stringContaining('CREATEROLE')])
    expect(await warningsOf(await bench.createRole('SUPERUSER'))).toEqual([
      expect.stringContaining('Mayfly logs in as a superuser'),
    ])
    expect(await warningsOf(await bench.setUp())).toEqual([])
  })

  it('warns of a password that the server never asked for', async () => {
    const warnings = await (await bench.open(await bench.createRole('SUPERUSER'))).check(signal())
    expect(warnings.some((text) => text.includes('never asked'))).toBe(!bench.server.asksPassword)
  })

  it('wants the functions of this version, for this configuration', async () => {
    const mayfly = await bench.setUp()
    expect((await refusal({ ...mayfly, schemas: ['closed'] })).message).toContain('setup-sql')
    expect((await refusal({ ...mayfly, grant: 'read-write' })).message).toContain('write access')
    expect((await refusal({ ...mayfly, reassign_owned_to: 'x' })).message).toContain('reassign_owned_to')
    const source = await bench.sql("SELECT prosrc FROM pg_proc WHERE oid = 'mayfly.inspect()'::regprocedure")
    const older = String(source[0]?.['prosrc']).replace("'version', 1", "'version', 0")
    await bench.sql(
      `CREATE OR REPLACE FUNCTION mayfly.inspect() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
         SET search_path = pg_catalog, pg_temp AS $x$${older}$x$`,
    )
    const error = await refusal(mayfly)
    expect(error).toMatchObject({
      fault: 'misconfigured',
      message: expect.stringMatching(/version 0.*setup-sql/),
    })
  })

  it("ignores functions in a schema that is not a superuser's", async () => {
    const { name } = await bench.createDatabase()
    const hostile = await bench.createRole('')
    await bench.sql(
      `CREATE SCHEMA mayfly AUTHORIZATION "${hostile.username}"; GRANT USAGE ON SCHEMA mayfly TO PUBLIC; SET ROLE "${hostile.username}";
       CREATE FUNCTION mayfly.inspect() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'called as %', current_user; END $$`,
      [],
      name,
    )
    await (await bench.open({ database: name })).check(signal())
  })

  it('names CREATEROLE where it is missing', async () => {
    const plain = await bench.createRole('NOCREATEROLE')
    const error = await refusal(plain)
    expect(error.fault).toBe('denied')
    expect(error.message).toContain(`ALTER ROLE "${plain.username}" CREATEROLE`)
  })

  it('names INHERIT, which PostgreSQL 15 needs', async () => {
    const admin = await bench.createRole('CREATEROLE NOINHERIT')
    // From 16 on a membership says itself whether it is inherited, so there this role is enough.
    if (bench.server.version >= 160_000) await (await bench.open(admin)).check(signal())
    else expect((await refusal(admin)).message).toContain('CREATEROLE INHERIT')
  })

  it('names the schema that cannot be granted on, and passes once it can', async () => {
    const admin = await bench.createRole('CREATEROLE')
    const error = await refusal({ ...admin, schemas: ['closed'] })
    expect(error.fault).toBe('denied')
    expect(error.message).toContain(`GRANT USAGE ON SCHEMA closed TO ${admin.username} WITH GRANT OPTION`)
    await bench.sql(`GRANT USAGE ON SCHEMA closed TO "${admin.username}" WITH GRANT OPTION`)
    // What it may use but not grant on is covered by nobody's grant.
    await bench.sql(`GRANT SELECT ON ALL TABLES IN SCHEMA closed TO "${admin.username}"`)
    const check = async () => (await bench.open({ ...admin, schemas: ['closed'] })).check(signal())
    expect(await check()).toContainEqual(expect.stringMatching(/SELECT on closed\.t.*WITH GRANT OPTION/))
    await bench.sql(`GRANT SELECT ON ALL TABLES IN SCHEMA closed TO "${admin.username}" WITH GRANT OPTION`)
    expect(await check()).not.toContainEqual(expect.stringContaining('closed.t'))
  })

  it('counts the tables that it does not name', async () => {
    await bench.sql(
      `CREATE SCHEMA wide; DO $$ BEGIN FOR i IN 1..200 LOOP
         EXECUTE format('CREATE TABLE wide.%s_%s ()', repeat('x', 50), i); END LOOP; END $$`,
    )
    const admin = await bench.createRole('CREATEROLE')
    await bench.sql(`GRANT USAGE ON SCHEMA wide TO "${admin.username}" WITH GRANT OPTION`)
    const warnings = await (await bench.open({ ...admin, schemas: ['wide'] })).check(signal())
    expect(warnings).toContainEqual(expect.stringContaining('and 180 more'))
  })

  it('names a database that other roles cannot connect to', async () => {
    const { name } = await bench.createDatabase()
    const admin = await bench.createRole('CREATEROLE')
    await bench.sql(
      `REVOKE CONNECT ON DATABASE ${name} FROM PUBLIC; GRANT CONNECT ON DATABASE ${name} TO "${admin.username}"`,
    )
    const error = await refusal({ ...admin, databases: [bench.database.name, name] })
    expect(error.message).toContain('GRANT CONNECT ON DATABASE')
    await bench.sql(`GRANT CONNECT ON DATABASE ${name} TO "${admin.username}" WITH GRANT OPTION`)
    const backend = await bench.open({ ...admin, databases: [bench.database.name, name] })
    await backend.check(signal())
    const issued = await backend.issue(request([name]), signal())
    await (await login(issued)).end()
    await backend.revoke?.(issued.handle ?? {}, signal())
  })

  it.each(['SUPERUSER', 'CREATEROLE'])(
    'refuses to reassign to a role that is %s: leftover functions would run as it',
    async (option) => {
      const owner = await bench.createRole(option)
      const error = await refusal({ reassign_owned_to: owner.username })
      expect(error.fault).toBe('misconfigured')
      expect(error.message).toContain('"reassign_owned_to" is a superuser or may create roles')
    },
  )

  it('names the role that nothing can be reassigned to', async () => {
    const [admin, owner] = [await bench.createRole('CREATEROLE'), await bench.createRole('')]
    const error = await refusal({ ...admin, reassign_owned_to: owner.username })
    expect(error.message).toContain(`GRANT "${owner.username}" TO "${admin.username}"`)
    expect((await refusal({ reassign_owned_to: 'nobody_there' })).fault).toBe('misconfigured')
  })

  it('tries own statements, and finds the wrong one', async () => {
    const grant = 'statements' as const
    await (await bench.open({ grant, statements: ['GRANT USAGE ON SCHEMA closed TO {{name}}'] })).check(
      signal(),
    )
    for (const statements of [
      ['GRANT SELECT ON closed.missing TO {{name}}'],
      ['GRANTT'],
      ['SELECT 1; SELECT 2'],
    ]) {
      expect((await refusal({ grant, statements })).fault).toBe('misconfigured')
    }
  })
})

describe('own statements', () => {
  it('may switch to another role, which ends with the last statement', async () => {
    const [admin, owner] = [await bench.createRole('CREATEROLE'), await bench.createRole('')]
    await bench.sql(
      `GRANT "${owner.username}" TO "${admin.username}"; CREATE SCHEMA theirs AUTHORIZATION "${owner.username}"`,
    )
    const statements = [`SET ROLE "${owner.username}"`, 'GRANT USAGE ON SCHEMA theirs TO {{name}}']
    const backend = await bench.open({ ...admin, grant: 'statements', statements })
    await backend.check(signal())
    // On one connection, the second as the role that the first switched to.
    for (const issued of [
      await backend.issue(request(['x']), signal()),
      await backend.issue(request(['x']), signal()),
    ]) {
      await (await login(issued)).end()
      await backend.revoke?.(issued.handle ?? {}, signal())
    }
  })

  it('receive name, password, expiration and scopes, quoted', async () => {
    await bench.sql('CREATE TABLE closed.seen (name text, verifier text, until timestamptz, scopes text[])')
    const backend = await bench.open({
      grant: 'statements',
      statements: [
        'GRANT USAGE ON SCHEMA closed TO {{name}}',
        "DO $$ BEGIN IF 'a--b' = ANY ({{scopes}}) THEN GRANT SELECT ON closed.t TO {{ name }}; END IF; END $$",
        'DO $do$ BEGIN INSERT INTO closed.seen VALUES ($q$x$q$, {{password}}, {{expiration}}, {{scopes}}); END $do$',
      ],
    })
    const asked = request(['a--b', 'c/*', 'd:e.@+*'])
    const issued = await backend.issue(asked, signal())
    const client = await login(issued)
    expect((await client.query('SELECT * FROM closed.t')).rowCount).toBe(0)
    await client.end()
    const [seen] = await bench.sql('SELECT * FROM closed.seen')
    expect(seen).toMatchObject({ scopes: asked.scopes, until: new Date(asked.expiresAt) })
    expect(seen?.['verifier']).toMatch(/^SCRAM-SHA-256\$/)
    await backend.revoke?.(issued.handle ?? {}, signal())
    for (const scope of ["it's", '$do$', '\\', '{{name}}', 'a b', '']) {
      await expect(backend.issue(request([scope]), signal())).rejects.toMatchObject({ fault: 'unsupported' })
    }
  })

  it('are not run without scopes, and undo the role when one fails', async () => {
    const statements = ['SELECT 1/0']
    const backend = await bench.open({ grant: 'statements', statements })
    const none = await backend.issue(request([]), signal())
    await backend.revoke?.(none.handle ?? {}, signal())
    const asked = request(['x'])
    await expect(backend.issue(asked, signal())).rejects.toMatchObject({ fault: 'misconfigured' })
    const name = backend.recover?.(asked.credentialId)?.['username']
    expect(await bench.sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [name])).toEqual([])
  })
})
