import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  discardArtefact,
  placeArtefact,
  prepareArtefact,
  removeStaged,
  sha256Of,
  stageArtefact,
} from './artefacts.ts'
import { writeTarball } from './tarball.ts'

let root: string
let directory: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'mayfly-artefacts-'))
  directory = join(root, 'plugins')
  // Where the copies go.
  vi.stubEnv('TMPDIR', join(root, 'tmp'))
  await mkdir(join(root, 'tmp'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(root, { recursive: true })
})

const SCRIPT = Buffer.from('#!/bin/sh\necho hello\n')
const modeOf = async (path: string) => (await lstat(path)).mode & 0o777
const executable = (sha256: string) => ({ sha256, runtime: 'executable' }) as const
const prepare = (sha256: string, isShared = false) =>
  prepareArtefact(executable(sha256), { directory, isShared })
const copies = () => readdir(join(root, 'tmp'))

describe('an artefact', () => {
  test('is placed under its hash, and started from a private copy that its end removes', async () => {
    const sha256 = await placeArtefact(directory, SCRIPT)
    expect(sha256).toBe(sha256Of(SCRIPT))
    expect([await modeOf(directory), await modeOf(join(directory, sha256))]).toEqual([0o700, 0o500])
    expect(await readdir(directory)).toEqual([sha256])
    const program = await prepare(sha256)
    expect(program).toMatchObject({ runtime: 'executable', bytes: SCRIPT.length })
    expect(program.entry.startsWith(`${program.folder}/`)).toBe(true)
    expect([await modeOf(program.folder), await modeOf(program.entry)]).toEqual([0o700, 0o500])
    expect(await readFile(program.entry)).toEqual(SCRIPT)
    await program.close()
    expect(await copies()).toEqual([])
  })

  test('for another user is a copy that everybody may read and nobody may change', async () => {
    const program = await prepare(await placeArtefact(directory, SCRIPT), true)
    expect([await modeOf(program.folder), await modeOf(program.entry)]).toEqual([0o755, 0o555])
  })

  test('that was changed in place is not started, and leaves no copy', async () => {
    const sha256 = await placeArtefact(directory, SCRIPT)
    await chmod(join(directory, sha256), 0o700)
    await writeFile(join(directory, sha256), `${SCRIPT} `)
    await expect(prepare(sha256)).rejects.toMatchObject({
      name: 'BackendError',
      fault: 'misconfigured',
      message: expect.stringContaining('has other bytes'),
    })
    expect(await copies()).toEqual([])
  })

  test('that is a symbolic link is not started, although the bytes are right', async () => {
    const sha256 = await placeArtefact(directory, SCRIPT)
    await rename(join(directory, sha256), join(root, 'elsewhere'))
    await symlink(join(root, 'elsewhere'), join(directory, sha256))
    await expect(prepare(sha256)).rejects.toThrow('is a symbolic link')
  })

  test.each([
    ['is missing', async () => undefined, 'Add the plugin here with mayfly plugin add'],
    ['is a directory', (path: string) => mkdir(path), 'no regular file'],
  ])('that %s is not started', async (_, make, message) => {
    await mkdir(directory, { mode: 0o700 })
    const sha256 = sha256Of(SCRIPT)
    await make(join(directory, sha256))
    await expect(prepare(sha256)).rejects.toThrow(message)
  })

  test.each(['../../etc/passwd', 'C0FFEE', ''])('is never a path: %j', async (sha256) => {
    await placeArtefact(directory, SCRIPT)
    await expect(prepare(sha256)).rejects.toThrow('not in hexadecimal form')
    await discardArtefact(directory, sha256)
    expect(await readdir(directory)).toHaveLength(1)
  })

  test('in a directory that others can write to is neither placed nor started', async () => {
    const sha256 = await placeArtefact(directory, SCRIPT)
    await chmod(directory, 0o770)
    await expect(prepare(sha256)).rejects.toThrow(`Run: chmod go-w ${directory}`)
    await expect(placeArtefact(directory, SCRIPT)).rejects.toThrow(`Run: chmod go-w ${directory}`)
  })

  test.runIf(process.geteuid?.() === 0)('in a directory of another user is not started', async () => {
    const sha256 = await placeArtefact(directory, SCRIPT)
    const { chown } = await import('node:fs/promises')
    await chown(directory, 65_534, 65_534)
    await expect(prepare(sha256)).rejects.toThrow(`Run: chown 0 ${directory}`)
  })
})

describe('for Node', () => {
  const unpack = async (bytes: Uint8Array, isShared = false) =>
    prepareArtefact(
      { sha256: await placeArtefact(directory, bytes), runtime: 'node' },
      { directory, isShared },
    )

  test('a module lies beside a package.json of its own, so that none of a directory above counts', async () => {
    const { entry, folder } = await unpack(Buffer.from('export {}'))
    expect(await readdir(folder)).toEqual(['package.json', 'plugin.js'])
    expect(await readFile(entry, 'utf8')).toBe('export {}')
  })

  test('a package is unpacked, and starts with its entry', async () => {
    const files = { 'package.json': '{"main":"lib/a.js"}', 'lib/a.js': 'a', 'node_modules/b/index.js': 'b' }
    const packed = Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) }))
    const { entry, folder } = await unpack(writeTarball(packed), true)
    expect(entry).toBe(join(folder, 'lib/a.js'))
    for (const [path, text] of Object.entries(files))
      expect(await readFile(join(folder, path), 'utf8')).toBe(text)
    expect(await modeOf(join(folder, 'node_modules'))).toBe(0o755)
  })

  test('a package with a path that leads outside is refused, and leaves nothing', async () => {
    const packed = writeTarball([{ path: '../evil', bytes: Buffer.from('x') }])
    await expect(unpack(packed)).rejects.toMatchObject({ name: 'BackendError', fault: 'misconfigured' })
    expect(await copies()).toEqual([])
    expect(await readdir(root)).not.toContain('evil')
  })
})

describe('what a killed command staged', () => {
  /** In a process of its own, which is killed before it can release it. */
  async function stageAndDie(text: string): Promise<string> {
    const module = JSON.stringify(join(import.meta.dirname, 'artefacts.ts'))
    const script = `import(${module}).then(async ({ stageArtefact }) => {
      const { sha256 } = await stageArtefact(${JSON.stringify(directory)}, Buffer.from(${JSON.stringify(text)}))
      process.stdout.write(sha256)
      setInterval(() => undefined, 60_000)
    })`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    const [sha256] = await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await ended
    return String(sha256)
  }

  test('is removed, unless it is pinned or still under way', async () => {
    const pinned = await stageAndDie('pinned')
    const lost = await stageAndDie('lost')
    const underWay = await stageArtefact(directory, Buffer.from('under way'))
    const provisioned = await placeArtefact(directory, Buffer.from('put there by somebody'))
    expect(await readdir(directory)).toHaveLength(7)
    await removeStaged(directory, new Set([pinned]))
    const left = await readdir(directory)
    expect(left.filter((name) => !name.startsWith('draft-')).sort()).toEqual(
      [pinned, underWay.sha256, provisioned].sort(),
    )
    expect(left).toHaveLength(4)
    expect(left).not.toContain(lost)
    await underWay.release()
    expect(await readdir(directory)).toHaveLength(3)
  })
})
