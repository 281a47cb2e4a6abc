import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildMayfly, linkPackages } from '../support/plugin-package.ts'
import { newHome, runCli } from './support.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const run = promisify(execFile)
let home: string
let env: Record<string, string>
let folder: string
beforeAll(async () => {
  buildMayfly()
  ;({ home, env } = await newHome())
  folder = join(home, 'mayfly-plugin-acme')
  expect(await runCli(['plugin', 'new', folder], { env })).toMatchObject({ code: 0 })
  linkPackages(folder)
})
afterAll(() => rm(home, { recursive: true, force: true }))

const runTests = () =>
  run(process.execPath, ['--test', 'test/*.test.ts'], { cwd: folder, env }).catch((error) => error)

// The compiler takes most of a minute on two busy cores.
test('makes a package that is what the types allow', { timeout: 300_000 }, async () => {
  const config = {
    extends: join(folder, 'tsconfig.json'),
    compilerOptions: { types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
    include: ['src', 'test', 'example'].map((name) => join(folder, name)),
  }
  const path = join(folder, 'tsconfig.test.json')
  await writeFile(path, JSON.stringify(config))
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  expect((await run(process.execPath, [tsc, '-p', path]).catch((error) => error)).stdout).toBe('')
})

test('its tests pass, and fail for a kind that leaves accounts behind', async () => {
  const passed = await runTests()
  expect(passed.stdout).toMatch(/ fail 0$/m)
  expect(passed.stdout).toContain('the contract of a kind: acme')
  const path = join(folder, 'src', 'kind.ts')
  const text = await readFile(path, 'utf8')
  const broken = text.replace("await call(signal, 'DELETE'", "await call(signal, 'GET'")
  expect(broken).not.toBe(text)
  await writeFile(path, broken)
  const failed = await runTests()
  await writeFile(path, text)
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('revokes at once')])
})

test('names the kind after the directory, or as --name says', async () => {
  const { stdout } = await runCli(['plugin', 'new', 'other', '--name', 'acme-2', '--json'], {
    env,
    cwd: home,
  })
  expect(JSON.parse(stdout)).toMatchObject({ name: 'acme-2', directory: join(home, 'other') })
  const kind = await readFile(join(home, 'other', 'src', 'kind.ts'), 'utf8')
  expect(kind).toContain("type: 'acme-2'")
})

test('refuses a directory that is not empty, and a name that no kind can have', async () => {
  await mkdir(join(home, 'empty'))
  const again = await runCli(['plugin', 'new', folder], { env })
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is not empty')])
  for (const [name, why] of [
    ['Acme', 'is no name of a kind'],
    ['postgres', 'is built in'],
  ] as const) {
    const { code, stderr } = await runCli(['plugin', 'new', 'empty', '--name', name], { env, cwd: home })
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
  }
  expect(await runCli(['plugin', 'new', 'empty'], { env, cwd: home })).toMatchObject({ code: 0 })
})
