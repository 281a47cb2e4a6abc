import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Bench, openBench } from '../../../test/support/postgres-kind.ts'
import { scramVerifier } from './scram.ts'
import { fillStatement, findStatementFaults, quoteIdentifier, quoteList } from './statements.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
})
afterAll(() => bench?.close())

const text = fc
  .string({ unit: 'grapheme', maxLength: 40 })
  .filter((value) => !value.includes('\0') && value.isWellFormed())

describe('quoting', () => {
  it('round-trips through the server', async () => {
    const hostile = [`'`, `''`, `\\`, `\\'; DROP`, `"`, `$$`, `E'`, '\n\r\t', 'é', '{{name}}']
    const values = [...hostile, ...fc.sample(text, 200)]
    const rows = await bench.sql(`SELECT ${quoteList(values)} AS list`)
    expect(rows[0]?.['list']).toEqual(values)
    const { host, port, username, password } = bench.server
    const options = '-c standard_conforming_strings=off'
    const client = new pg.Client({ host, port, user: username, password, database: 'postgres', options })
    await client.connect()
    expect((await client.query(`SELECT ${quoteList(values)} AS list`)).rows[0].list).toEqual(values)
    await client.end()
  })

  it('keeps an identifier one identifier', async () => {
    for (const name of [`a"b`, `"; DROP`, `x'y`, 'é', 'A b']) {
      const rows = await bench.sql(`SELECT 1 AS ${quoteIdentifier(name)}`)
      expect(Object.keys(rows[0] ?? {})).toEqual([name])
    }
  })
})

describe('placeholders', () => {
  it.each([
    'GRANT x TO {{name}}',
    'GRANT x TO {{ name }};',
    "SELECT 'it''s', {{scopes}}",
    'SELECT "odd""name" -- it\'s a comment\n, {{name}}',
    "/* a /* nested ' */ one */ SELECT {{expiration}}",
    "SELECT E'a\\'b', {{password}}",
    'DO $x$ BEGIN PERFORM f({{name}}); END $x$',
    'SELECT 1',
  ])('are taken in %s', (statement) => {
    expect(findStatementFaults(statement)).toBeUndefined()
  })

  it.each([
    'GRANT x TO {{user}}',
    'GRANT x TO {{}}',
    'GRANT x TO {{name',
    'GRANT x TO {{name}}}}',
    "SELECT '{{name}}'",
    'SELECT "{{name}}"',
    '-- {{name}}',
    '/* {{name}} */ SELECT 1',
    "SELECT E'\\'{{name}}'",
    "SELECT 'open",
    'SELECT "open',
    '/* open',
    `${'/*'.repeat(5)}${'*/'.repeat(5)} SELECT 1`,
    '/*'.repeat(4096),
    `/*${'*'.repeat(8000)}`,
    "SELECT $$it's$$, '{{scopes}}'",
    'SELECT {{__proto__}}',
    'SELECT \0',
  ])('are refused in %j', (statement) => {
    expect(findStatementFaults(statement)).toBeTypeOf('string')
  })

  it.each([
    'COMMIT',
    'end',
    ' ;\n; Commit AND CHAIN',
    '/* a /* b */ */ -- c\n ROLLBACK',
    'savepoint x',
    'RELEASE x',
    "PREPARE TRANSACTION 'x'",
    'START TRANSACTION',
    'abort',
  ])('must not end the transaction that creates the role: %j', (statement) => {
    expect(findStatementFaults(statement)).toBe('begins or ends a transaction')
  })

  it.each([
    'COMMENT ON ROLE {{name}} IS NULL',
    'PREPARE p AS SELECT 1',
    'SELECT 1 AS commit',
    'DO $$BEGIN NULL; END$$',
  ])('may contain %j', (statement) => {
    expect(findStatementFaults(statement)).toBeUndefined()
  })

  it('are filled once: a value that looks like a placeholder stays', () => {
    const values = { name: '{{password}}', password: '$&', expiration: '', scopes: '' }
    expect(fillStatement('{{name}} {{ password }}', values)).toBe('{{password}} $&')
  })
})

describe('the SCRAM verifier', () => {
  it("is the server's own for the same password, salt and count", async () => {
    const { username } = await bench.createRole('')
    const password = 'q5dK9_-xYz0123456789ABCDEFabcdefGHIJKLMNOP1'
    await bench.sql(
      `SET password_encryption = 'scram-sha-256'; ALTER ROLE ${username} PASSWORD '${password}'`,
    )
    const [row] = await bench.sql('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [username])
    const stored = String(row?.['rolpassword'])
    const [, count = '', salt = ''] = /^SCRAM-SHA-256\$(\d+):([^$]+)\$/.exec(stored) ?? []
    expect(await scramVerifier(password, Number(count), Buffer.from(salt, 'base64'))).toBe(stored)
    expect(await scramVerifier(password, 256)).not.toBe(await scramVerifier(password, 256))
  })
})
