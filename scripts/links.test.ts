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

test.each(pages)('%s points only at what is there', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)].map((match) => match[1] ?? '')
  const missing = links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))
  expect(missing).toEqual([])
})

/** Files that a page names by their path from the root. */
test.each(pages)('%s names only files that are there', (page) => {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const named = [...text.matchAll(/`((?:src|test|docs|scripts|bench)\/[\w./-]+\.\w+)`/g)].map(
    (one) => one[1] ?? '',
  )
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
