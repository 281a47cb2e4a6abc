import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entryOf, packageRoot } from './package-entry.ts'
import { type PackedFile, readTarball, writeTarball } from './tarball.ts'

const MIB = 1024 * 1024
const file = (path: string, text = path): PackedFile => ({ path, bytes: Buffer.from(text) })
const shown = (files: readonly PackedFile[]) =>
  files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString('utf8')])
const LONG = `${'directory/'.repeat(20)}module.js`

describe('an archive of ours', () => {
  test('holds what was put in, in the order of the paths, under the same bytes for any order', async () => {
    const files = [file('package.json', '{}'), file(LONG), file('a/ü.js', ''), file('a/x', 'x'.repeat(512))]
    const packed = writeTarball(files)
    expect(shown(await readTarball(packed, MIB)).sort()).toEqual(shown(files).sort())
    expect(shown(await readTarball(gzipSync(packed), MIB)).sort()).toEqual(shown(files).sort())
    expect(writeTarball([...files].reverse()).equals(packed)).toBe(true)
  })

  test('is read by tar', () => {
    const list = execFileSync('tar', ['-tf', '-'], { input: writeTarball([file('b/c'), file(LONG)]) })
    expect(list.toString().trim().split('\n')).toEqual(['b/c', LONG])
  })

  test('of any paths comes back or is refused', async () => {
    const part = fc.string({ minLength: 1, maxLength: 90, unit: 'grapheme' })
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 4 }), async (parts) => {
        const path = parts.join('/')
        const read = await readTarball(writeTarball([file(path, 'x')]), MIB).catch(({ name }) => name)
        if (read !== 'BadArchive')
          expect(shown(read)).toEqual([[expect.not.stringMatching(/^\/|\.\.\//), 'x']])
      }),
    )
  })
})

describe('an archive of tar', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-tar-'))
    await mkdir(join(folder, 'package/lib'), { recursive: true })
    await writeFile(join(folder, 'package/package.json'), '{"main":"lib"}')
    await writeFile(join(folder, 'package/lib/index.js'), 'x')
    await mkdir(join(folder, 'linked'))
    await symlink('/etc/passwd', join(folder, 'linked/x'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const tar = (...argv: string[]) => execFileSync('tar', ['-cz', '-C', folder, ...argv])

  test.each(['gnu', 'posix', 'ustar', 'v7'])('in the form %s is read', async (form) => {
    const files = packageRoot(await readTarball(tar(`--format=${form}`, 'package'), MIB))
    expect(shown(files).sort()).toEqual([
      ['lib/index.js', 'x'],
      ['package.json', '{"main":"lib"}'],
    ])
    expect(entryOf(files)).toBe('lib/index.js')
  })

  test.each(['gnu', 'posix'])('with long paths in the form %s is read', async (form) => {
    const moved = `--transform=s,package,${LONG},`
    const files = await readTarball(tar(`--format=${form}`, moved, 'package/package.json'), MIB)
    expect(files.map(({ path }) => path)).toEqual([`${LONG}/package.json`])
  })

  test('with a symbolic link is refused', async () => {
    await expect(readTarball(tar('linked'), MIB)).rejects.toThrow('"linked/x" is a link')
  })

  test.each([
    ['s,package,../x,', '"../x/package.json" is no path'],
    ['s,package,/etc,', '"/etc/package.json" is no path'],
    ['s,package,a/../../b,', 'is no path'],
    ['s,package,a\\\\b,', 'is no path'],
  ])('with the path of %s is refused', async (transform, message) => {
    const bytes = tar('-P', `--transform=${transform}`, 'package/package.json')
    await expect(readTarball(bytes, MIB)).rejects.toThrow(message)
  })
})

describe('an archive is refused', () => {
  const whole = writeTarball([file('a', 'x'.repeat(1_000))])

  test.each([
    ['with one path twice', writeTarball([file('a'), file('./a')]), 'twice'],
    [
      'with a file that is a directory, too',
      writeTarball([file('a'), file('a/b')]),
      'a file and a directory',
    ],
    ['that ends too early', whole.subarray(0, 700), 'in the middle'],
    ['without an end', whole.subarray(0, 1_536), 'no end'],
    ['with a damaged header', Buffer.concat([Buffer.from('b'), whole.subarray(1)]), 'damaged'],
    ['that is no gzip', Buffer.from([0x1f, 0x8b, 1, 2, 3]), 'compression is damaged'],
    ['that unpacks to too much', gzipSync(Buffer.alloc(2 * MIB)), 'unpacks to more than'],
  ])('%s', async (_, bytes, message) => {
    await expect(readTarball(bytes, MIB)).rejects.toThrow(message)
  })
})

test.each<[object, string | undefined]>([
  [{ main: 'lib/a.js' }, 'lib/a.js'],
  [{ main: './lib/a' }, 'lib/a.js'],
  [{ exports: './lib/a.js', main: 'nothing.js' }, 'lib/a.js'],
  [{ exports: { '.': { types: 'x', import: './lib/a.js' } } }, 'lib/a.js'],
  [{}, 'index.js'],
  [{ main: '../lib/a.js' }, undefined],
  [{ main: '/etc/passwd' }, undefined],
  [{ main: 'lib/../lib/a.js' }, undefined],
  [{ main: 'lib/none.js' }, undefined],
])('a package with %j starts %s', (manifest, entry) => {
  const files = [file('package.json', JSON.stringify(manifest)), file('lib/a.js'), file('index.js')]
  if (entry === undefined) expect(() => entryOf(files)).toThrow('no file of the package')
  else expect(entryOf(files)).toBe(entry)
})
