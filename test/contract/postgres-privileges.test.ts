import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Config } from '../../src/backends/postgres/config.ts'
import { LONG } from '../support/long.ts'
import { type Bench, openBench, request, signal } from '../support/postgres-kind.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
})
afterAll(() => bench?.close())

/** What a relation is made by, and which privileges there are on it. */
const TABLE = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']
const MAKERS = {
  table: (name: string) => `CREATE TABLE ${name} (id int)`,
  partitioned: (name: string) => `CREATE TABLE ${name} (id int) PARTITION BY RANGE (id)`,
  view: (name: string) => `CREATE VIEW ${name} AS SELECT 1 AS id`,
  materialized: (name: string) => `CREATE MATERIALIZED VIEW ${name} AS SELECT 1 AS id`,
  sequence: (name: string) => `CREATE SEQUENCE ${name}`,
} as const
type Made = keyof typeof MAKERS

const schemaNames = ['app', 'it"s', "o'dd \\ ", 'other']
const relation = fc.record({
  schema: fc.constantFrom(...schemaNames),
  made: fc.constantFrom(...(Object.keys(MAKERS) as Made[])),
  name: fc.constantFrom('a', 'B', 'c"d', "e'f", 'g\\h', 'ü'),
})

/** All privileges of a role in the connected database, one line each. */
const PRIVILEGES = `
  SELECT format('%s %I.%I', p, n.nspname, c.relname) AS line FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
      unnest(CASE WHEN c.relkind = 'S' THEN '{USAGE,SELECT,UPDATE}' ELSE '{${TABLE.join()}}'::text[] END) p
   WHERE n.nspname = ANY ($2) AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
     AND CASE WHEN c.relkind = 'S' THEN has_sequence_privilege($1::name, c.oid, p) ELSE has_table_privilege($1::name, c.oid, p) END
  UNION ALL
  SELECT format('%s SCHEMA %I', p, n.nspname) FROM pg_namespace n, unnest('{USAGE,CREATE}'::text[]) p
   WHERE n.nspname = ANY ($2) AND has_schema_privilege($1::name, n.oid, p)
  UNION ALL
  SELECT format('%s DATABASE', p) FROM unnest('{CREATE}'::text[]) p WHERE has_database_privilege($1::name, current_database(), p)
  UNION ALL
  SELECT 'ROLE ' || r.rolname FROM pg_roles r WHERE r.rolname <> $1 AND pg_has_role($1::name, r.oid, 'MEMBER') AND r.rolname !~ '^mfg_'
  UNION ALL
  SELECT 'ADMIN ' || r.rolname FROM pg_roles r WHERE r.rolname <> $1 AND pg_has_role($1::name, r.oid, 'MEMBER WITH ADMIN OPTION')
  ORDER BY 1`

type Relation = { schema: string; made: Made; name: string }

function expected(relations: readonly Relation[], schemas: readonly string[], access: string): string[] {
  if (access === 'none') return []
  const quoted = (name: string) => (/^[a-z]+$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)
  const on = relations
    .filter(({ schema }) => schemas.includes(schema))
    .flatMap(({ schema, made, name }) => {
      const sequence =
        made === 'sequence' ? ['SELECT', 'USAGE', 'UPDATE'] : ['SELECT', 'INSERT', 'UPDATE', 'DELETE']
      return (access === 'read' ? ['SELECT'] : sequence).map((p) => `${p} ${quoted(schema)}.${quoted(name)}`)
    })
  return [...on, ...schemas.map((schema) => `USAGE SCHEMA ${quoted(schema)}`)]
}

describe.each(['functions', 'direct'] as const)('the privileges of a credential, by %s', (way) => {
  it('are those of its scopes, on every object, and no others', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(relation, { maxLength: 12, selector: ({ schema, name }) => `${schema} ${name}` }),
        fc.subarray(schemaNames, { minLength: 1 }),
        fc.constantFrom<Config['grant']>('read-only', 'read-write'),
        fc.constantFrom('read', 'write', 'all', 'none'),
        async (relations, schemas, grant, scope) => {
          const { name } = await bench.createDatabase()
          const id = (text: string) => `"${text.replaceAll('"', '""')}"`
          await bench.sql(
            [
              ...schemaNames.map((schema) => `CREATE SCHEMA ${id(schema)}`),
              ...relations.map(({ schema, made, name }) => MAKERS[made](`${id(schema)}.${id(name)}`)),
            ].join(';'),
            [],
            name,
          )
          const settings = { database: name, schemas, grant }
          const login =
            way === 'functions' ? await bench.setUp(settings) : await bench.createRole('CREATEROLE')
          if (way === 'direct') {
            const list = schemaNames.map(id).join(', ')
            await bench.sql(
              `GRANT CREATE ON DATABASE ${name} TO ${login.username};
               GRANT ALL ON SCHEMA ${list} TO ${login.username} WITH GRANT OPTION; GRANT ALL ON ALL TABLES IN SCHEMA ${list}
                 TO ${login.username} WITH GRANT OPTION; GRANT ALL ON ALL SEQUENCES IN SCHEMA ${list} TO ${login.username} WITH GRANT OPTION`,
              [],
              name,
            )
          }
          // Disposed of here: the connections of all runs would add up to more than the server admits.
          await using backend = await bench.open({ ...settings, ...login })
          const scopes = scope === 'none' ? [] : [scope === 'all' ? '*' : `${name}:${scope}`]
          const issuing = backend.issue(request(scopes), signal())
          if (scope === 'write' && grant === 'read-only') {
            await expect(issuing).rejects.toMatchObject({ fault: 'unsupported' })
            return
          }
          const issued = await issuing
          const access = scope === 'all' ? (grant === 'read-write' ? 'write' : 'read') : scope
          const role = issued.fields?.['username']
          const found = (await bench.sql(PRIVILEGES, [role, [...schemaNames]], name)).map(({ line }) => line)
          expect(found.sort()).toEqual(expected(relations, schemas, access).sort())
          await backend.revoke?.(issued.handle ?? {}, signal())
          await backend.retire?.(signal())
        },
      ),
      { numRuns: LONG ? 40 : 3 },
    )
  })
})
