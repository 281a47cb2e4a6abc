import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bench, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
})
afterAll(() => bench?.close())

const READS = "SELECT has_table_privilege($1::name, 'public.later', 'SELECT') AS reads"

describe.each(['functions', 'direct'] as const)('the groups of a backend, by %s', (way) => {
  it('take in new tables at a refresh, name what they cannot, and go with the backend', async () => {
    const other = await bench.createDatabase()
    const both = [bench.database.name, other.name]
    for (const name of both) await bench.sql('CREATE TABLE first ()', [], name)
    const settings = { databases: both, grant: 'read-write' as const }
    const mayfly = way === 'functions' ? await bench.setUp(settings) : await bench.createRole('CREATEROLE')
    const grant = `GRANT ALL ON ALL TABLES IN SCHEMA public TO "${mayfly.username}" WITH GRANT OPTION`
    if (way === 'direct') for (const name of both) await bench.sql(grant, [], name)
    const backend = await bench.open({ ...settings, ...mayfly })
    const issued = await backend.issue(request(['*']), signal())
    const role = issued.handle?.['username']
    for (const name of both) await bench.sql('CREATE TABLE later ()', [], name)
    await backend.keepUp?.(signal())
    if (way === 'direct') {
      expect(bench.logged()).toContain('on public.later')
      for (const name of both) await bench.sql(grant, [], name)
      await backend.keepUp?.(signal())
    }
    for (const name of both) expect(await bench.sql(READS, [role], name)).toEqual([{ reads: true }])
    await (await login(issued, other.name)).end()
    await backend.revoke?.(issued.handle ?? {}, signal())

    // Those of the functions belong to the script.
    const ours = `SELECT rolname FROM pg_roles WHERE rolname ~ '^mf[gc]_${bench.uid.slice(3)}_'`
    expect((await bench.sql(ours)).length > 0).toBe(way === 'direct')
    await backend.retire?.(signal())
    await backend.retire?.(signal())
    expect(await bench.sql(ours)).toEqual([])
    for (const name of both) await bench.sql('DROP TABLE first, later', [], name)
  })

  it('are made again when somebody has dropped them', async () => {
    if (way === 'functions') return
    await bench.sql('CREATE TABLE kept ()')
    const backend = await bench.open()
    const first = await backend.issue(request(['*']), signal())
    await backend.revoke?.(first.handle ?? {}, signal())
    const [group] = await bench.sql(
      `SELECT rolname AS name FROM pg_roles WHERE starts_with(rolname, 'mfg_${bench.uid.slice(3)}')`,
    )
    await bench.sql(`DROP OWNED BY ${group?.['name']}; DROP ROLE ${group?.['name']}`)
    const second = await backend.issue(request(['*']), signal())
    const client = await login(second)
    expect((await client.query('SELECT * FROM public.kept')).rowCount).toBe(0)
    await client.end()
    await backend.revoke?.(second.handle ?? {}, signal())
    await bench.sql('DROP TABLE kept')
  })
})
