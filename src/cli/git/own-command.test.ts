import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ownCommand } from './wrapper.ts'

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url))
let bin: string
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'mayfly-bin-'))
})
afterEach(() => rmSync(bin, { recursive: true, force: true }))

test('uses the name if the PATH leads here, otherwise node and file', () => {
  const byFile = [process.execPath, MAIN]
  expect(ownCommand({ env: { PATH: `/nowhere:${bin}` } })).toEqual(byFile)
  writeFileSync(join(bin, 'mayfly'), '', { mode: 0o755 })
  expect(ownCommand({ env: { PATH: bin } })).toEqual(byFile)
  rmSync(join(bin, 'mayfly'))
  symlinkSync(MAIN, join(bin, 'mayfly'))
  expect(ownCommand({ env: { PATH: `/nowhere:${bin}` } })).toEqual(['mayfly'])
  expect(ownCommand({ env: {} })).toEqual(byFile)
})

test('uses node and file if another command of this name comes first', () => {
  const [first, second] = ['first', 'second'].map((name) => join(bin, name))
  for (const directory of [first, second]) mkdirSync(String(directory))
  symlinkSync(MAIN, join(String(second), 'mayfly'))
  const env = { PATH: `${first}:${second}` }
  expect(ownCommand({ env })).toEqual(['mayfly'])
  writeFileSync(join(String(first), 'mayfly'), '', { mode: 0o755 })
  expect(ownCommand({ env })).toEqual([process.execPath, MAIN])
})
