import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml'
import { ConfigError, type Fault, quote } from '../domain/fault.ts'
import { fileFault, type ReadFile, readFix } from './read-secret.ts'

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
    const message =
      error instanceof TypeError ? 'is not UTF-8 text' : `${fileFault(error)}${await readFix(file, error)}`
    throw new ConfigError([{ source: origin, message: `the file ${quote(file)} ${message}` }])
  }
  return parseConfigText(file, text)
}

export function parseConfigText(file: string, text: string): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    // The parser would compare each key with all others, which takes minutes for a large file.
    uniqueKeys: false,
  })
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset)
    return `${file}:${Math.max(line, 1)}:${Math.max(col, 1)}`
  }
  const faults: Fault[] = [
    ...[...document.errors, ...document.warnings].map((error) => ({
      source: place(error.pos[0]),
      message: `not valid YAML: ${REASONS[error.code] ?? error.code.toLowerCase().replaceAll('_', ' ')}`,
    })),
    ...repeatedKeys(document).map((offset) => ({
      source: place(offset),
      message: 'not valid YAML: this key appears twice',
    })),
  ]
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
  const childOf = indexChildren()
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

/** Where each key stands that its mapping already has. */
function repeatedKeys(document: Document.Parsed): number[] {
  const offsets: number[] = []
  visit(document, {
    Map: (_, map) => {
      const seen = new Set<unknown>()
      for (const { key } of map.items) {
        const name = isScalar(key) ? key.value : key
        if (seen.has(name)) offsets.push(rangeStart(key) ?? 0)
        seen.add(name)
      }
    },
  })
  return offsets
}

interface Child {
  readonly key?: unknown
  readonly value: unknown
}

/** Finds the child of a node at a step of a path; goes through each mapping once, however often it is asked. */
function indexChildren(): (node: unknown, step: string | number) => Child | undefined {
  const known = new Map<YAMLMap, ReadonlyMap<string, Child>>()
  return (node, step) => {
    if (isSeq(node) && typeof step === 'number') return { value: node.items[step] }
    if (!isMap(node)) return undefined
    const children = known.get(node) ?? new Map(node.items.map((pair) => [keyOf(pair.key), pair]))
    known.set(node, children)
    return children.get(String(step))
  }
}

const keyOf = (key: unknown) => (isScalar(key) ? String(key.value) : '')

function rangeStart(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}
