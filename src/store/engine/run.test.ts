import { expect, test } from 'vitest'
import { createBuilder } from './compile.ts'
import { asValue, requireStorable, run } from './run.ts'

const build = createBuilder('sqlite')
const REFUSED = [
  new Date(0),
  true,
  false,
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1.5,
  2 ** 53,
  10n,
  {},
  ['a'],
  new Uint8Array(1),
  'a\0b',
  Symbol('s'),
]

test.each([null, '', 'text', '🦟', 0, -1, Number.MAX_SAFE_INTEGER])('%s can be stored', (value) => {
  expect(asValue(value)).toBe(value)
})

test.each(REFUSED)('%s cannot be stored, by whichever way it comes', (value) => {
  expect(() => asValue(value)).toThrow(TypeError)
  const update = build
    .updateTable('meta')
    .set({ value: value as string })
    .where('key', '=', 'k')
  // Kysely omits undefined values and binds the others.
  if (value !== undefined) expect(() => run(update, 1)).toThrow(TypeError)
  const row = { key: 'k', value: value as string }
  expect(() => requireStorable([{ op: 'insert', table: 'meta', row }])).toThrow(TypeError)
  const params = [value as string]
  expect(() => requireStorable([{ op: 'run', sql: '', params, rows: 1 }])).toThrow(TypeError)
})

test('run keeps the statement, its values and the rows that it must touch', () => {
  const update = build.updateTable('meta').set({ value: 'v' }).where('key', '=', 'k')
  expect(run(update, 'any')).toEqual({
    op: 'run',
    sql: 'update "meta" set "value" = ? where "key" = ?',
    params: ['v', 'k'],
    rows: 'any',
  })
})
