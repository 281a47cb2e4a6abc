import { expect, test } from 'vitest'
import { createBuilder, placeholders } from './compile.ts'

test('placeholders are as each database writes them', () => {
  const sql = 'SELECT a FROM t WHERE a = ? AND b > ? LIMIT ?'
  expect(placeholders('sqlite', sql)).toBe(sql)
  expect(placeholders('postgres', sql)).toBe('SELECT a FROM t WHERE a = $1 AND b > $2 LIMIT $3')
})

test('more than nine placeholders keep their order', () => {
  const sql = Array.from({ length: 12 }, () => '?').join(', ')
  expect(placeholders('postgres', sql)).toBe('$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12')
})

test('the builder compiles for its database and executes nothing', async () => {
  const query = (dialect: 'sqlite' | 'postgres') =>
    createBuilder(dialect).selectFrom('meta').select('value').where('key', '=', 'k')
  expect(query('sqlite').compile().sql).toBe('select "value" from "meta" where "key" = ?')
  expect(query('postgres').compile().sql).toBe('select "value" from "meta" where "key" = $1')
  expect(await query('sqlite').execute()).toEqual([])
})
