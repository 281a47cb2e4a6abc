import type { Row } from './client.ts'
import { bodyOf, PROCEDURES, type ProcedureName, type Way } from './procedures.ts'
import { quoteList, quoteLiteral } from './statements.ts'

type Value = string | readonly string[] | undefined

/** The statements that run a procedure; the last one returns its reply. */
export function invoke(
  way: Way,
  name: ProcedureName,
  values: Readonly<Record<string, Value>>,
): readonly string[] {
  const { given, fixed, direct } = PROCEDURES[name]
  if (way === 'functions') {
    const list = Object.keys(given).map((parameter) => literal(values[parameter]))
    return [`SELECT mayfly.${name}(${list.join(', ')}) AS reply`]
  }
  const declared = Object.entries({ ...given, ...fixed, ...direct }).map(
    ([parameter, type]) => `${parameter} ${type} := ${literal(values[parameter])};`,
  )
  const block = `DECLARE ${declared.join(' ')} BEGIN ${bodyOf(name, way)}; END`
  return [`DO ${quoteLiteral(block)}`, "SELECT current_setting('mayfly.reply') AS reply"]
}

function literal(value: Value): string {
  if (value === undefined) return 'NULL'
  return typeof value === 'string' ? quoteLiteral(value) : quoteList(value)
}

/** The procedures answer with JSON of ours. */
export function replyOf<T>(rows: readonly Row[]): T {
  return JSON.parse(String(rows[0]?.['reply'])) as T
}
