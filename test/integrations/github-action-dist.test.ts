import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { bundleAction, PROGRAMS } from '../../scripts/bundle/action.ts'
import { actionFile } from './fake-runner.ts'

const DIST = fileURLToPath(new URL('../../integrations/github-action/dist/', import.meta.url))

const contentsOf = async (directory: string) => {
  const names = (await readdir(directory)).sort()
  return Promise.all(
    names.map(async (name) => [name, await readFile(join(directory, name), 'utf8')] as const),
  )
}

test('the committed programs of the action are made from its sources: node scripts/bundle/action.ts', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-action-'))
  try {
    await bundleAction(directory)
    const [committed, made] = [await contentsOf(DIST), await contentsOf(directory)]
    expect(committed.map(([name]) => name)).toEqual(PROGRAMS.map((name) => `${name}.mjs`).sort())
    // Compared without a diff of all their lines.
    for (const [index, [name, text]] of made.entries())
      expect({ name, isCurrent: committed[index]?.[1] === text }).toEqual({ name, isCurrent: true })
  } finally {
    await rm(directory, { recursive: true })
  }
})

test('the programs import nothing that GitHub would have to install', async () => {
  for (const [, text] of await contentsOf(DIST)) {
    const imported = [
      ...text.matchAll(/^import .* from "([^"]+)"|\bimport\("([^"]+)"\)|\brequire\("([^"]+)"\)/gm),
    ]
    expect(imported.length).toBeGreaterThan(0)
    for (const [, ...names] of imported) expect(names.find((name) => name !== undefined)).toMatch(/^node:/)
  }
})

test('action.yml runs the programs that are there, on Node 24', async () => {
  const { runs, inputs } = await actionFile()
  expect(runs).toMatchObject({ using: 'node24', main: 'dist/main.mjs', post: 'dist/post.mjs' })
  expect(Object.keys(inputs).sort()).toEqual(['audience', 'env', 'heartbeat', 'purpose', 'server'])
})
