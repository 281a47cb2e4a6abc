import { readFile } from 'node:fs/promises'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { ROUTES } from '../../src/http/routing/route-table.ts'
import { DECISIONS, SPECIFICATION } from './sentences.ts'

const ROOT = new URL('../../', import.meta.url)
const SENTENCES = [...SPECIFICATION, ...DECISIONS]

interface Row {
  id: string
  quote: string
  tests: { file: string; name: string }[]
  later: string[]
}

const unescapeCell = (cell: string) => cell.trim().replaceAll('\\|', '|')

async function readRows(): Promise<Row[]> {
  const text = await readFile(new URL('README.md', import.meta.url), 'utf8')
  return [...text.matchAll(/^\| ([SD]\d\S*) +\| (.*?) +\| ((?:[^|]|\\\|)*?) +\|$/gm)].map(
    ([, id = '', quote = '', cells = '']) => {
      const parts = unescapeCell(cells).split('<br>')
      const later = parts.filter((part) => part.startsWith('_later: '))
      const tests = parts
        .filter((part) => !later.includes(part))
        .map((part) => {
          const [, file, name] = /^`([^`]+)` › (.+)$/.exec(part) ?? []
          if (file === undefined || name === undefined) throw new Error(`${id}: not a test: ${part}`)
          return { file, name }
        })
      return { id, quote: unescapeCell(quote), tests, later }
    },
  )
}

/** The names of the tests of a file, as they are written: `test('name', …)`, `it.each(…)('name', …)`. */
async function testsOf(file: string): Promise<Set<string>> {
  const source = ts.createSourceFile(
    file,
    await readFile(new URL(file, ROOT), 'utf8'),
    ts.ScriptTarget.Latest,
  )
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ['test', 'it'].includes(rootOf(node.expression))) {
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

const rows = await readRows()

test('every sentence has a number of its own', () => {
  const ids = SENTENCES.map(([id]) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('the page has every sentence as it is listed, in order, and no other', () => {
  expect(rows.map(({ id, quote }) => [id, quote])).toEqual(SENTENCES.map(([id, quote]) => [id, quote]))
})

test('every sentence has a test', () => {
  expect(rows.filter((row) => row.tests.length === 0).map(({ id }) => id)).toEqual([])
})

test('every number of the decisions is there', () => {
  const counts = { 1: 10, 2: 5, 3: 5, 4: 9, 5: 7, 6: 5, 7: 3, 8: 4, 9: 4 }
  const wanted = Object.entries(counts).flatMap(([section, count]) =>
    Array.from({ length: count }, (_, index) => `D${section}.${index + 1}`),
  )
  expect(DECISIONS.map(([id]) => id)).toEqual([...wanted, 'D10'])
})

describe('every test that is named exists under exactly that name', async () => {
  const files = [...new Set(rows.flatMap((row) => row.tests.map(({ file }) => file)))].sort()
  test.each(files)('in %s', async (file) => {
    const known = await testsOf(file)
    const named = rows.flatMap((row) => row.tests.filter((one) => one.file === file).map(({ name }) => name))
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([])
  })
})

test('every route is called by some test of the API, or of the programs that use it', async () => {
  const files = ['access', 'headers'].map((name) => `test/api/${name}.test.ts`)
  const text = (await Promise.all(files.map((file) => readFile(new URL(file, ROOT), 'utf8')))).join('\n')
  // Both go through the table itself; the hand-written one must name each route.
  expect(Object.keys(ROUTES).filter((name) => !text.includes(`'${name}'`))).toEqual([])
})
