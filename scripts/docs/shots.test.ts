import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FIRST_RUN, SHOTS } from './shots.ts'

/** Pixels are for eyes: that the files are there, small, and shown is what a test can say. */
const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'docs/assets/console')
const files = readdirSync(FOLDER).sort()

test('every screenshot that is described has a file, and no other has', () => {
  expect(files).toEqual([...FIRST_RUN, ...SHOTS].map(({ name }) => `${name}.webp`).sort())
})

test.each(files)('%s is a small WebP, which a page shows', (name) => {
  const path = join(FOLDER, name)
  expect(statSync(path).size).toBeLessThan(80_000)
  expect(readFileSync(path).toString('latin1', 8, 12)).toBe('WEBP')
  const pages = ['README.md', 'docs/guides/console.md', 'docs/guides/people.md']
  expect(
    pages.filter((page) => readFileSync(join(ROOT, page), 'utf8').includes(`assets/console/${name}`)),
  ).not.toEqual([])
})
