import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { readGuide } from './read-guide.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8')
const list = (directory: string) => readdirSync(`${ROOT}${directory}`).map((name) => `${directory}/${name}`)

/** They describe a set-up that no test machine has: a system's services, proxies, several nodes. */
const DESCRIBE = ['install', 'tls', 'several-nodes', 'monitoring'].map((name) => `docs/operations/${name}.md`)
const pages = [
  'README.md',
  ...list('docs/start'),
  ...list('docs/guides'),
  ...list('docs/operations').filter((path) => !DESCRIBE.includes(path)),
]
const tests = [...list('test/docs'), ...list('test/package')].filter(
  (path) => path.endsWith('.test.ts') && !path.includes('coverage'),
)

test.each(pages)('a test runs %s', (page) => {
  expect(readGuide(read(page)).some(({ kind }) => kind === 'run')).toBe(true)
  expect(tests.filter((path) => read(path).includes(`'${page}'`))).toHaveLength(1)
})

test.each(pages)('%s has no command in a block that no test runs', (page) => {
  const outsideLists = read(page).replace(/^( *)(`{3,})[\s\S]*?^\1\2\s*$/gm, '')
  expect(outsideLists).not.toMatch(/\n\n {4}\S/)
  const skipped = [...read(page).matchAll(/<!-- not run: (.*?) -->/g)].map(([, why]) => why)
  expect(skipped.every((why) => why !== undefined && why.length > 10)).toBe(true)
})

test.each(pages)('%s shows every command that its other commands need', (page) => {
  const hidden = [...read(page).matchAll(/^<!-- run\n([\s\S]*?)^-->$/gm)].map(([, commands]) => commands)
  // The test has set this variable; a reader has not.
  expect(hidden.filter((commands) => !/^export -n \w+\n$/.test(commands ?? ''))).toEqual([])
})

test.each(pages)('%s names each file that it makes', (page) => {
  const text = read(page)
  for (const [, path = ''] of text.matchAll(/<!-- file: (.*?) -->/g))
    expect(text.replace(/<!-- .*? -->/g, ''), path).toContain(`\`${path}\``)
})
