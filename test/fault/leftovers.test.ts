import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { MAIN } from '../cli/support.ts'
import { startApp } from '../support/app.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mayfly-leftovers-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const hex = 'c0ffee'.repeat(2)

async function endedPid(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}

const drafts = async (directory: string) => (await readdir(directory)).filter((name) => /\.part$/.test(name))

it('a killed backup leaves a draft, which the next backup beside it removes', async () => {
  const app = await startApp()
  try {
    const env = { PATH: process.env['PATH'], HOME: folder }
    const backUp = (name: string) => {
      const argv = [MAIN, 'backup', join(folder, name), '--data-dir', app.directory]
      return spawn(process.execPath, argv, { env, stdio: ['ignore', 'ignore', 'inherit'] })
    }
    for (let round = 0; (await drafts(folder)).length === 0; round += 1) {
      const child = backUp(`killed${round}.db`)
      const ended = once(child, 'exit')
      const watching = watch(folder, (_, name) => {
        if (name?.endsWith('.part')) child.kill('SIGKILL')
      })
      const [, signal] = await ended
      watching.close()
      expect(signal).toBe('SIGKILL')
    }
    // Of a process that runs.
    const other = `other.db.${process.pid}-${hex}.part`
    await writeFile(join(folder, other), '')
    const [code] = await once(backUp('whole.db'), 'exit')
    expect(code).toBe(0)
    expect(await readdir(folder)).toContain('whole.db')
    expect(await drafts(folder)).toEqual([other])
  } finally {
    await app.close()
  }
})

it('the start removes what killed commands left: drafts of a restore, and plugins that were not pinned', async () => {
  const pid = await endedPid()
  const plugins = join(folder, 'plugins')
  const draft = join(plugins, `draft-${pid}-abcdef`)
  const lost = 'a'.repeat(64)
  await mkdir(draft, { recursive: true, mode: 0o700 })
  for (const path of [join(draft, lost), join(plugins, lost), join(plugins, 'b'.repeat(64))])
    await writeFile(path, '')
  await writeFile(join(folder, `restore-${pid}-${hex}.db`), '')
  await writeFile(join(folder, `restore-${pid}-${hex}.db-journal`), '')
  const app = await startApp({ argv: { dataDir: folder, pluginDir: plugins } })
  await app.close()
  expect((await readdir(folder)).filter((name) => name.startsWith('restore-'))).toEqual([])
  expect(await readdir(plugins)).toEqual(['b'.repeat(64)])
})
