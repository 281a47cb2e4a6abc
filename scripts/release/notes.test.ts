import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { releaseNotes } from './notes.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const CHANGELOG = `# Changelog

## [Unreleased]

## [1.1.0] - 2026-12-01

### Added

- A door.

## [1.0.0] - Unreleased

- A house.
`

test('the notes of a release are its section', () => {
  expect(releaseNotes(CHANGELOG, '1.1.0')).toEqual({ text: '### Added\n\n- A door.\n' })
})

test.each([
  ['1.0.0', /has no date/],
  ['1.1', /no section \[1\.1\]/],
])('%s cannot be released', (version, why) => {
  expect(releaseNotes(CHANGELOG, version)).toEqual({ fault: expect.stringMatching(why) })
})

test('our changelog has a section of the version in package.json, with the kinds of change of Keep a Changelog', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const dated = read('CHANGELOG.md').replace(`[${version}] - Unreleased`, `[${version}] - 2026-01-01`)
  const { text } = releaseNotes(dated, version) as { text: string }
  const kinds = [...text.matchAll(/^### (.*)$/gm)].map(([, kind]) => kind)
  expect(kinds.length).toBeGreaterThan(0)
  for (const kind of kinds)
    expect(['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']).toContain(kind)
})
