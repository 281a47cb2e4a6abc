import { bodyOf, PARAMETERS, type ProcedureName, type Way } from './procedures.ts'
import type { Row } from './session.ts'
import { quoteList, quoteLiteral } from './statements.ts'

type Value = string | readonly string[] | undefined
export type Arguments = Readonly<Record<string, Value>>

/** The statements that run a procedure; the last one returns its reply. */
export function invoke(way: Way, name: ProcedureName, values: Arguments): readonly string[] {
  if (way === 'functions') {
    return [`SELECT mayfly.${name}(${Object.values(values).map(literal).join(', ')}) AS reply`]
  }
  const declared = Object.entries(PARAMETERS[name]).map(
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
