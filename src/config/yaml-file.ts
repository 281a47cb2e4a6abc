import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type ParsedNode, parseDocument } from 'yaml'
import { ConfigError, type Fault, quote } from './fault.ts'
import { fileFault, type ReadFile } from './read-secret.ts'

export type Path = readonly (string | number)[]

export interface ConfigFile {
  readonly value: Readonly<Record<string, unknown>>
  /** `file:line:col` of the value at the path, or of its nearest parent; `key`: of its key. */
  locate(path: Path, what?: 'key' | 'value'): string
}

const MAX_FILE_BYTES = 1_048_576

/** The parser's own messages can quote the file, and the file can hold secrets. */
const REASONS: Record<string, string> = {
  BAD_INDENT: 'the indentation is wrong, or a bracket is not closed',
  BLOCK_AS_IMPLICIT_KEY: 'the line contains a second "key: value"; quote the value',
  DUPLICATE_KEY: 'this key appears twice',
  MISSING_CHAR: 'a quote, bracket, colon or comma is missing',
  MULTIPLE_DOCS: 'the file contains more than one document',
  TAB_AS_INDENT: 'indentation must not use tabs',
  TAG_RESOLVE_FAILED: 'tags are not allowed',
}

/** Reads and parses the file. Throws `ConfigError` with every fault of the text. */
export async function readConfigFile(file: string, origin: string, readFile: ReadFile): Promise<ConfigFile> {
  let text: string
  try {
    const bytes = await readFile(file)
    if (bytes.length > MAX_FILE_BYTES) {
      throw new ConfigError([{ source: file, message: `is larger than ${MAX_FILE_BYTES} bytes` }])
    }
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const message = error instanceof TypeError ? 'is not UTF-8 text' : fileFault(error)
    throw new ConfigError([{ source: origin, message: `the file ${quote(file)} ${message}` }])
  }
  return parseConfigText(file, text)
}

export function parseConfigText(file: string, text: string): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`
  }
  const faults: Fault[] = [...document.errors, ...document.warnings].map((error) => ({
    source: place(error.pos[0]),
    message: `not valid YAML: ${REASONS[error.code] ?? error.code.toLowerCase().replaceAll('_', ' ')}`,
  }))
  if (faults.length > 0) throw new ConfigError(faults)
  const root: ParsedNode | null = document.contents
  if (root === null || (isScalar(root) && root.value === null)) return { value: {}, locate: () => file }
  const start = place(root.range[0])
  if (!isMap(root)) {
    throw new ConfigError([{ source: start, message: 'must contain "key: value" lines' }])
  }
  let value: Record<string, unknown>
  try {
    // The default bound on aliases (100) keeps a "billion laughs" file from being expanded.
    value = document.toJS()
  } catch {
    throw new ConfigError([
      { source: start, message: 'not valid YAML: an alias is unknown or used too often' },
    ])
  }
  const locate: ConfigFile['locate'] = (path, what = 'value') => {
    let node: unknown = root
    let offset = root.range[0]
    for (const [depth, step] of path.entries()) {
      if (isAlias(node)) break
      const next = childOf(node, step)
      if (next === undefined) break
      const wantsKey = what === 'key' && depth === path.length - 1
      offset = rangeStart(wantsKey ? next.key : next.value) ?? rangeStart(next.key) ?? offset
      node = next.value
    }
    return place(offset)
  }
  return { value, locate }
}

function childOf(node: unknown, step: string | number): { key?: unknown; value: unknown } | undefined {
  if (isSeq(node) && typeof step === 'number') return { value: node.items[step] }
  if (!isMap(node)) return undefined
  const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === step)
  return pair === undefined ? undefined : { key: pair.key, value: pair.value }
}

function rangeStart(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}
