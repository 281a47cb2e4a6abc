import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((page) => page !== '' && existsSync(join(ROOT, page)))
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')

/** Without code, where brackets and hashes mean something else. */
const prose = (text: string) =>
  text.replace(/^( *)(`{3,})[\s\S]*?^\1\2\s*$/gm, '').replace(/`[^`\n]*`/g, '``')

/** The anchors of a page's headings, as GitHub and VitePress make them. */
function anchorsOf(page: string): Set<string> {
  const text = read(page).replace(/^( *)(`{3,})[\s\S]*?^\1\2\s*$/gm, '')
  const anchors = new Set<string>()
  for (const [, title = ''] of text.matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-')
    let unique = slug
    for (let count = 1; anchors.has(unique); count += 1) unique = `${slug}-${count}`
    anchors.add(unique)
  }
  return anchors
}

interface Link {
  readonly path: string
  readonly anchor: string
}

function linksOf(page: string): Link[] {
  return [...prose(read(page)).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?[^)]*\)/g)].map(
    ([, path = '', anchor = '']) => ({ path, anchor }),
  )
}

test.each(pages)('%s links only to files that exist', (page) => {
  const missing = linksOf(page).filter(({ path }) => !existsSync(join(ROOT, dirname(page), path)))
  expect(missing).toEqual([])
})

test.each(pages)('%s links only to headings that exist', (page) => {
  const missing = linksOf(page).filter(({ path, anchor }) => {
    const target = path === '' ? page : join(dirname(page), path)
    return anchor !== '' && target.endsWith('.md') && !anchorsOf(target).has(anchor)
  })
  expect(missing).toEqual([])
})

test.each(pages)('%s names only source files that exist', (page) => {
  const named = [...read(page).matchAll(/`((?:src|test|docs|scripts|bench)\/[\w./-]+\.\w+)`/g)].map(
    (one) => one[1] ?? '',
  )
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
