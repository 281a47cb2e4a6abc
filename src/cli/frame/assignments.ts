import { parseJson } from '../../domain/formats/json.ts'
import { usage } from './failure.ts'

const FORM = /^([A-Za-z_][A-Za-z0-9_.-]{0,63})(:?=)([\s\S]*)$/

/** Reads the `name=text` and `name:=json` of `flag`; a repeated name makes a list. Throws `CliError` (usage). */
export function readAssignments(
  given: readonly string[] | undefined,
  flag: string,
): Record<string, unknown> | undefined {
  if (given === undefined || given.length === 0) return undefined
  const values = new Map<string, unknown[]>()
  for (const text of given) {
    const [, name, sign, value] = FORM.exec(text) ?? []
    if (name === undefined || value === undefined || name === '__proto__' || name === 'constructor')
      throw usage(`${flag} takes name=text, or name:=json for numbers, booleans and lists.`)
    values.set(name, [...(values.get(name) ?? []), sign === ':=' ? readJson(value, name, flag) : value])
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? all[0] : all]))
}

function readJson(text: string, name: string, flag: string): unknown {
  const value = parseJson(text)
  if (value !== undefined) return value
  throw usage(`The value of ${flag} ${name}:= is not JSON.`, `Use ${flag} ${name}=… for plain text.`)
}
