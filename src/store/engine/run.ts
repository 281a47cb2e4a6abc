import type { Compilable } from 'kysely'
import type { Table, Tables } from '../schema/rows.ts'
import type { Change, Step, Value } from './change.ts'

/** Adds one row. */
export function insert<T extends Table>(table: T, row: Tables[T]): Step {
  return { op: 'insert', table, row } as Step
}

/** A compiled update or delete as a step that must touch exactly `rows` rows. */
export function run(query: Compilable, rows: number | 'any'): Extract<Step, { op: 'run' }> {
  return { op: 'run', ...compiled(query), rows }
}

export function compiled(query: Compilable): { readonly sql: string; readonly params: Value[] } {
  const { sql, parameters } = query.compile()
  return { sql, params: parameters.map(asValue) }
}

/**
 * A value that both databases can store and compare. In SQLite a `Date` or `NaN` would silently become NULL, and a
 * boolean would be an error; PostgreSQL has no text with NUL. Each is a bug in our code: throws `TypeError`.
 */
export function asValue(value: unknown): Value {
  if (value === null || (typeof value === 'number' && Number.isSafeInteger(value))) return value
  if (typeof value === 'string') {
    if (value.includes('\0')) throw new TypeError('a stored text holds no NUL')
    return value
  }
  const found = typeof value === 'number' ? String(value) : typeof value
  throw new TypeError(`a stored value is text, a whole number or null, not ${found}`)
}

/** Checks a change before it joins others, so that an invalid one fails alone. Throws `TypeError`. */
export function requireStorable(change: Change): void {
  for (const step of change) {
    if (step.op === 'insert') for (const cell of Object.values(step.row)) asValue(cell)
    else if (step.op === 'run') step.params.forEach(asValue)
    else if (step.op === 'guard') asValue(step.version)
    else if (step.op === 'token') asValue(step.expiresAt)
  }
}
