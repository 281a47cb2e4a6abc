import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { isPresent, readPrivateFile, removeFile, writePrivateFile } from './private-file.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-private-'))
})

describe('writing', () => {
  test('creates a file of 0600 in directories of 0700 under any umask', async () => {
    const before = process.umask(0)
    try {
      await writePrivateFile(join(home, 'a/b/c'), 'text')
    } finally {
      process.umask(before)
    }
    expect((await stat(join(home, 'a/b/c'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(home, 'a/b'))).mode & 0o777).toBe(0o700)
    expect(await readPrivateFile(join(home, 'a/b/c'))).toBe('text')
  })

  test('replaces a file atomically, tightens its mode, and leaves no temporary file', async () => {
    await writeFile(join(home, 'x'), 'old and longer', { mode: 0o644 })
    await writePrivateFile(join(home, 'x'), 'new')
    expect((await stat(join(home, 'x'))).mode & 0o777).toBe(0o600)
    expect(await readFile(join(home, 'x'), 'utf8')).toBe('new')
    expect(await readdir(home)).toEqual(['x'])
  })

  test('a program for itself', async () => {
    await writePrivateFile(join(home, 'run'), '#!/bin/sh\necho ran\n', 0o700)
    expect(execFileSync(join(home, 'run')).toString()).toBe('ran\n')
  })

  test('that fails changes nothing', async () => {
    await mkdir(join(home, 'taken/inside'), { recursive: true })
    await expect(writePrivateFile(join(home, 'taken'), 'text')).rejects.toMatchObject({
      name: 'CliError',
      code: 'not_written',
      exitCode: 1,
    })
    await writeFile(join(home, 'plain'), '')
    await expect(writePrivateFile(join(home, 'plain/x'), 'text')).rejects.toMatchObject({
      code: 'not_written',
    })
    expect((await readdir(home)).sort()).toEqual(['plain', 'taken'])
  })

  test('many at once: one of them is there, whole', async () => {
    const texts = Array.from({ length: 20 }, (_, index) => String(index).repeat(1_000))
    await Promise.all(texts.map((text) => writePrivateFile(join(home, 'x'), text)))
    expect(texts).toContain(await readPrivateFile(join(home, 'x')))
    expect(await readdir(home)).toEqual(['x'])
  })
})

describe('reading', () => {
  test('a missing file reads as undefined', async () => {
    expect(await readPrivateFile(join(home, 'none'))).toBeUndefined()
    expect(await isPresent(join(home, 'none'))).toBe(false)
    await removeFile(join(home, 'none'))
  })

  test.each([0o644, 0o640, 0o604, 0o660, 0o606])('a mode of %o is refused', async (mode) => {
    const path = join(home, 'x')
    await writeFile(path, 'secret')
    await chmod(path, mode)
    await expect(readPrivateFile(path)).rejects.toMatchObject({
      code: 'file_unsafe',
      hint: `Run: chmod 600 ${path}`,
    })
  })

  test('others may read what is no secret, but not change it', async () => {
    const path = join(home, 'x')
    await writeFile(path, 'text')
    await chmod(path, 0o644)
    expect(await readPrivateFile(path, { openTo: 'readers' })).toBe('text')
    await chmod(path, 0o664)
    await expect(readPrivateFile(path, { openTo: 'readers' })).rejects.toMatchObject({ code: 'file_unsafe' })
  })

  test('refuses anything but a regular file at once', async () => {
    execFileSync('mkfifo', ['-m', '600', join(home, 'pipe')])
    await expect(readPrivateFile(join(home, 'pipe'))).rejects.toMatchObject({ code: 'file_unsafe' })
    await mkdir(join(home, 'directory'), { mode: 0o700 })
    await expect(readPrivateFile(join(home, 'directory'))).rejects.toMatchObject({ code: 'file_unsafe' })
  })

  test('so is what is too large to be ours', async () => {
    await writeFile(join(home, 'x'), Buffer.alloc(1024 * 1024 + 1), { mode: 0o600 })
    await expect(readPrivateFile(join(home, 'x'))).rejects.toMatchObject({ code: 'file_too_large' })
  })

  test.runIf(process.getuid?.() === 0)('refuses a file of another user', async () => {
    await writeFile(join(home, 'x'), 'secret', { mode: 0o600 })
    await chown(join(home, 'x'), 65_534, 65_534)
    await expect(readPrivateFile(join(home, 'x'))).rejects.toMatchObject({ code: 'file_unsafe' })
  })
})
