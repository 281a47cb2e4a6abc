import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { newPlace, removeAbandonedPlaces } from './place.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-places-'))
  vi.stubEnv('TMPDIR', directory)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(directory, { recursive: true })
})

async function endedPid(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}

test('removes the places of a process that is gone, with what lies in them', async () => {
  const gone = join(directory, `mayfly-plugin-${await endedPid()}-abcdef`)
  await mkdir(join(gone, 's'), { recursive: true })
  await writeFile(join(gone, 's', 'socket'), '')
  await removeAbandonedPlaces()
  expect(existsSync(gone)).toBe(false)
})

test('keeps its own places, those of running processes, and what only looks like one', async () => {
  const pid = await endedPid()
  const own = newPlace()
  const target = join(directory, 'target')
  const kept = [own, target, join(directory, `mayfly-plugin-${process.ppid}-abcdef`)]
  kept.push(join(directory, 'mayfly-plugin-x-abcdef'), join(directory, `mayfly-isolation-${pid}-a`))
  for (const path of kept) await mkdir(path, { recursive: true })
  const link = join(directory, `mayfly-plugin-${pid}-link`)
  await symlink(target, link)
  await removeAbandonedPlaces()
  for (const path of [...kept, link]) expect(existsSync(path), path).toBe(true)
})

test('removes the place of an earlier process that had the same number', async () => {
  const place = newPlace()
  vi.spyOn(process, 'uptime').mockReturnValue(-1)
  await removeAbandonedPlaces()
  expect(existsSync(place)).toBe(false)
  vi.restoreAllMocks()
})

test.runIf(process.geteuid?.() === 0)('keeps the places of other users', async () => {
  const place = join(directory, `mayfly-plugin-${await endedPid()}-abcdef`)
  await mkdir(place)
  await chown(place, 65_534, 65_534)
  await removeAbandonedPlaces()
  expect(existsSync(place)).toBe(true)
})

/** Waits until its directory loses an entry, and then puts a link in its place. */
const SWAP = `
const { readdirSync, renameSync, symlinkSync } = require('node:fs')
const [, directory, aside, target, count] = process.argv
process.stdout.write('ready')
while (readdirSync(directory).length === Number(count));
renameSync(directory, aside)
symlinkSync(target, directory)`

test('deletes nothing elsewhere, however quickly a process of the plugin swaps a directory for a link', async () => {
  const names = Array.from({ length: 1_000 }, (_, index) => `file${index}`)
  const fill = async (path: string) => {
    await mkdir(path, { recursive: true })
    await Promise.all(names.map((name) => writeFile(join(path, name), '')))
  }
  const target = join(directory, 'target')
  await fill(target)
  for (let round = 0; round < 5; round += 1) {
    const work = join(directory, `mayfly-plugin-${await endedPid()}-abcdef`, 'w')
    await fill(work)
    const aside = join(directory, `aside${round}`)
    const swapping = spawn(process.execPath, ['-e', SWAP, work, aside, target, `${names.length}`], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = once(swapping, 'exit')
    await once(swapping.stdout, 'data')
    // It may find something new in what it removes.
    await removeAbandonedPlaces().catch(() => undefined)
    swapping.kill('SIGKILL')
    await ended
    expect(await readdir(target)).toHaveLength(names.length)
  }
})
