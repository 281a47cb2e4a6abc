import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPrivateDirectory } from './private-directory.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-place-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

const mode = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('replaces all files of a set at once, readable by the owner only', async () => {
  const directory = await openPrivateDirectory({ env: {} })
  const name = (text: string) => [
    { name: 'user', text: `user-${text}` },
    { name: 'key', text: `key-${text}` },
  ]
  const place = await directory.replace('0', name('a'))
  const read = () => Promise.all(['user', 'key'].map((file) => readFile(join(place, file), 'utf8')))
  expect(await read()).toEqual(['user-a', 'key-a'])
  expect([await mode(directory.path), await mode(place), await mode(join(place, 'key'))]).toEqual([
    '700',
    '700',
    '600',
  ])
  expect(await directory.replace('0', name('b'))).toBe(place)
  expect(await directory.replace('1', name('c'))).not.toBe(place)
  expect(await read()).toEqual(['user-b', 'key-b'])
  expect((await readdir(directory.path)).sort()).toEqual(['0', '0.2', '1', '1.1'])
  await directory.remove()
  await expect(stat(directory.path)).rejects.toThrow('ENOENT')
})

test('a failed attempt does not block the next', async () => {
  const directory = await openPrivateDirectory({ env: {} })
  const write = (name: string) => directory.replace('0', [{ name, text: 'secret' }])
  const place = await write('key')
  await expect(write('no/such/place')).rejects.toThrow('ENOENT')
  expect(await readFile(join(place, 'key'), 'utf8')).toBe('secret')
  expect((await readdir(directory.path)).sort()).toEqual(['0', '0.1'])
  expect(await write('key')).toBe(place)
  await directory.remove()
})

test.each([
  ['is not there', '/no/such/place'],
  ['is relative', 'run'],
  ['is no directory', '/dev/null'],
  ['takes nothing', '/proc'],
])('a runtime directory that %s is passed over', async (_, place) => {
  const directory = await openPrivateDirectory({ env: { XDG_RUNTIME_DIR: place, TMPDIR: home } })
  expect(['/dev/shm', home]).toContain(dirname(directory.path))
  await directory.remove()
})

test('reports the system error if nothing can be written', async () => {
  const directory = await openPrivateDirectory({ env: {} })
  await directory.remove()
  await expect(directory.replace('0', [{ name: 'a', text: 'b' }])).rejects.toThrow('ENOENT')
})
