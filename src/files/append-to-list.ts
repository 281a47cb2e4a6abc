import { isDeepStrictEqual } from 'node:util'
import { isMap, isScalar, isSeq, parseDocument } from 'yaml'
import { InvalidValue } from '../domain/fault.ts'

/**
 * Adds an entry to a list of a YAML file, which it makes if there is none. No other line changes. `lines` are without
 * indentation, and begin the entry with a dash, perhaps below comments. Throws `InvalidValue` where the list has a form that
 * lines cannot be added to.
 */
export function appendToList(text: string, key: string, lines: readonly string[]): string {
  const document = parseDocument(text)
  const root = document.contents
  if (
    document.errors.length > 0 ||
    (root !== null && !isMap(root) && !(isScalar(root) && root.value === null))
  )
    throw new InvalidValue('the file is not valid YAML')
  const list = isMap(root) ? root.get(key, true) : undefined
  const added = list === undefined ? withList(text, key, lines) : withEntry(text, key, list, lines)
  const [before, after] = [read(text) ?? {}, read(added)]
  const entries = [...(before[key] ?? []), ...(read(lines.join('\n')) ?? [])]
  if (!isDeepStrictEqual(after, { ...before, [key]: entries }))
    throw new InvalidValue(`${key} has a form that an entry cannot be added to`)
  return added
}

const read = (text: string) => parseDocument(text).toJS()

function withList(text: string, key: string, lines: readonly string[]): string {
  const start = text === '' || text.endsWith('\n') ? text : `${text}\n`
  return `${start}${start === '' ? '' : '\n'}${key}:\n${lines.map((line) => `  ${line}\n`).join('')}`
}

function withEntry(text: string, key: string, list: unknown, lines: readonly string[]): string {
  const last = isSeq(list) && list.flow !== true ? list.items.at(-1) : undefined
  const range = (last as { range?: readonly [number, number, number] } | undefined)?.range
  if (range === undefined || range === null)
    throw new InvalidValue(
      `${key} is not a list with one entry on a line of its own, to which this one could be added`,
    )
  const dash = text.lastIndexOf('-', range[0] - 1)
  const indent = text.slice(text.lastIndexOf('\n', dash) + 1, dash)
  const end = text[range[1] - 1] === '\n' ? range[1] : text.indexOf('\n', range[1]) + 1 || text.length
  const before = text.slice(0, end)
  const gap = before.endsWith('\n') ? '' : '\n'
  return before + gap + lines.map((line) => `${indent}${line}\n`).join('') + text.slice(end)
}
