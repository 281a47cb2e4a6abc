import { access, readdir, readFile } from 'node:fs/promises'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/api/routes.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8')

interface Sentence {
  readonly id: string
  readonly text: string
  readonly tests: { file: string; name: string }[]
  /** Declined by an ADR, a matter of a page alone, or of a later issue. */
  isSettled?: true
}

/** The specification is not in the repository: these counts notice a sentence that got lost. */
const SPECIFICATION = { S1: 9, S2: 45, S3: 8, S4: 33, S5: 30, S6: 1, S7: 8, S8: 5, S9: 3 }

/** Below its introduction a page has headings, sentences and tests; every other line is a fault. */
async function readSentences(path: string): Promise<Sentence[]> {
  const page = await read(path)
  const sentences: Sentence[] = []
  for (const line of page.slice(page.indexOf('\n## ')).split('\n')) {
    const [, id, text] = /^- \*\*([SDR]\d\S*|N\.[A-Z]\d+)\*\* (.+)$/.exec(line) ?? []
    const [, file, name] = /^ {2}- `([^`]+)` › (.+)$/.exec(line) ?? []
    const last = sentences.at(-1)
    if (id !== undefined && text !== undefined) sentences.push({ id, text, tests: [] })
    else if (file !== undefined && name !== undefined && last !== undefined) last.tests.push({ file, name })
    else if (/^ {2}- (declined|page|later): ./.test(line) && last !== undefined) last.isSettled = true
    else if (line !== '' && !/^(## | {2}- not tested: )/.test(line))
      throw new Error(`neither a sentence nor a test: ${line}`)
  }
  return sentences
}

/** The names of the tests of a file, as they are written: `test('name', …)`, `it.each(…)('name', …)`. */
async function testsOf(file: string): Promise<Set<string>> {
  const source = ts.createSourceFile(file, await read(file), ts.ScriptTarget.Latest)
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ['test', 'it', 'longTest'].includes(rootOf(node.expression))) {
      const [first] = node.arguments
      if (first !== undefined && ts.isStringLiteralLike(first)) names.add(first.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

function rootOf(node: ts.Expression): string {
  if (ts.isIdentifier(node)) return node.text
  if (ts.isPropertyAccessExpression(node) || ts.isCallExpression(node) || ts.isTaggedTemplateExpression(node))
    return rootOf(ts.isTaggedTemplateExpression(node) ? node.tag : node.expression)
  return ''
}

const sentences = await readSentences('test/spec/README.md')
const findings = await readSentences('test/review/README.md')
const all = [...sentences, ...findings]
const ofDecisions = sentences.filter(({ id }) => id.startsWith('D'))
const ofSpecification = sentences.filter(({ id }) => id.startsWith('S'))

test('every sentence has a unique number', () => {
  const ids = all.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('no sentence of the specification is missing', () => {
  const counts: Record<string, number> = {}
  for (const { id } of ofSpecification) {
    const section = id.slice(0, 2)
    counts[section] = (counts[section] ?? 0) + 1
  }
  expect(counts).toEqual(SPECIFICATION)
})

test('every decision is listed under its own heading, in order', async () => {
  const page = await read('docs/explanation/decisions.md')
  const headings = [...page.matchAll(/^### (\d+\.\d+) (.+)$|^## (10) (.+)$/gm)]
  expect(ofDecisions.map(({ id, text }) => [id, text])).toEqual(
    headings.map(([, item, title, section, name]) => [`D${item ?? section}`, title ?? name]),
  )
})

test('every sentence and every finding has a test', () => {
  expect(all.filter((one) => one.tests.length === 0 && one.isSettled !== true).map(({ id }) => id)).toEqual(
    [],
  )
})

describe('every test that is named exists under exactly that name', () => {
  const files = [...new Set(all.flatMap((one) => one.tests.map(({ file }) => file)))].sort()
  test.each(files)('in %s', async (file) => {
    const known = await testsOf(file)
    const named = all.flatMap((row) => row.tests.filter((one) => one.file === file).map(({ name }) => name))
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })
})

test('every file and symbol that the threat model and the ADRs name exists', async () => {
  const adrs = (await readdir(new URL('docs/explanation/adr/', ROOT))).map((name) => `adr/${name}`)
  const missing: string[] = []
  for (const page of ['threat-model.md', 'decisions.md', ...adrs]) {
    const text = await read(`docs/explanation/${page}`)
    for (const [, path = '', symbol] of text.matchAll(
      /`((?:src|test|bench|scripts)\/[\w./-]+)`(?: \(`(\w+)`\))?/g,
    )) {
      const exists = await access(new URL(path, ROOT)).then(
        () => true,
        () => false,
      )
      const isThere = exists && (symbol === undefined || (await read(path)).includes(symbol))
      if (!isThere) missing.push(`${page}: ${path}${symbol === undefined ? '' : ` (${symbol})`}`)
    }
  }
  expect(missing).toEqual([])
})

test('every route is called by some test of the API, or of the programs that use it', async () => {
  const text = (
    await Promise.all(['access', 'headers'].map((name) => read(`test/api/${name}.test.ts`)))
  ).join('\n')
  // Both go through the table itself; the hand-written one must name each route.
  expect(Object.keys(ROUTES).filter((name) => !text.includes(`'${name}'`))).toEqual([])
})
