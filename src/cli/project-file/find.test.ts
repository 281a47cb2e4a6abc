import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findProjectFile } from './find.ts'

const OTHER = 12_345

let home: string
let cwd: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'mayfly-find-'))
  cwd = join(home, 'repository/packages/web')
  await mkdir(cwd, { recursive: true })
})
afterEach(() => rm(home, { recursive: true, force: true }))

const put = (directory: string, name = '.mayfly.yaml', text = 'credentials: { demo: }\n') =>
  writeFile(join(home, directory, name), text)
const makeRepository = () => mkdir(join(home, 'repository/.git'))
const find = () => findProjectFile({ cwd })

test('the file of this directory comes first, in a repository or not', async () => {
  await put('repository/packages/web')
  expect(await find()).toBe('.mayfly.yaml')
  await makeRepository()
  await put('repository')
  expect(await find()).toBe('.mayfly.yaml')
})

describe('in a repository', () => {
  beforeEach(makeRepository)

  test('the nearest directory above, up to the root', async () => {
    expect(await find()).toBeUndefined()
    await put('repository')
    expect(await find()).toBe('../../.mayfly.yaml')
    await put('repository/packages')
    expect(await find()).toBe('../.mayfly.yaml')
  })

  test('nothing above the root', async () => {
    await put('.')
    expect(await find()).toBeUndefined()
  })

  test('nothing above the root of an inner repository, whose .git is a file', async () => {
    await put('repository')
    await writeFile(join(home, 'repository/packages/.git'), 'gitdir: ../.git/modules/packages\n')
    expect(await find()).toBeUndefined()
  })

  test('nothing through a directory that every user can change', async () => {
    await put('repository')
    await chmod(join(home, 'repository/packages'), 0o777)
    expect(await find()).toBeUndefined()
  })

  test.runIf(process.getuid?.() === 0).each(['repository/packages/web', 'repository/packages', 'repository'])(
    'nothing through a directory of another user: %s',
    async (directory) => {
      await put('repository')
      await chown(join(home, directory), OTHER, OTHER)
      expect(await find()).toBeUndefined()
    },
  )
})

describe('under the name of version 0.1', () => {
  beforeEach(makeRepository)

  test('a file with credentials, unless there is one of the new name beside it', async () => {
    await put('repository/packages', 'mayfly.yaml')
    expect(await find()).toBe('../mayfly.yaml')
    await put('repository/packages')
    expect(await find()).toBe('../.mayfly.yaml')
  })

  test.each([
    ['the configuration of a server', 'listen: 127.0.0.1:8620\n'],
    ['a comment about credentials', '# credentials:\nlisten: 127.0.0.1:8620\n'],
    ['credentials further in', 'policies:\n  credentials: 1\n'],
    ['nothing', ''],
    ['too much', `credentials:\n${'#'.repeat(70_000)}`],
  ])('not %s', async (_, text) => {
    await put('repository/packages/web', 'mayfly.yaml', text)
    expect(await find()).toBeUndefined()
  })

  test('not a directory', async () => {
    await mkdir(join(cwd, 'mayfly.yaml'))
    expect(await find()).toBeUndefined()
  })
})

test('nothing above, outside a repository', async () => {
  await put('repository')
  expect(await find()).toBeUndefined()
})
