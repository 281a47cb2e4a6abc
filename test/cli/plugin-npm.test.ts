import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { readTarball, writeTarball } from '../../src/app/plugins/tarball.ts'
import { parrot } from '../support/plugin-artefact.ts'
import { runCli, startWorld, type World } from './support.ts'

const run = promisify(execFile)
let world: World
let env: Record<string, string>
let plugins: string
let folder: string
beforeAll(async () => {
  world = await startWorld()
  env = { ...world.bareEnv, MAYFLY_DATA_DIR: world.app.directory }
  plugins = join(world.app.directory, 'plugins')
})
afterAll(() => world.close())
beforeEach(async () => {
  folder = await mkdtemp(join(world.home, 'p-'))
})
afterEach(async () => {
  await mayfly('plugin', 'rm', 'parrot', '--yes')
})

const mayfly = (...argv: string[]) => runCli(argv, { env, cwd: folder })
const placed = () => readdir(plugins).catch(() => [])

async function newRepository(path: string, files: Record<string, string>): Promise<string> {
  await mkdir(path)
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text, { mode: 0o755 })
  const git = (...argv: string[]) =>
    run('git', ['-C', path, '-c', 'user.name=x', '-c', 'user.email=x@x', ...argv])
  await git('init', '--quiet')
  await git('add', '--all')
  await git('commit', '--quiet', '--message', 'x')
  return path
}

let registry: HttpServer
let npmEnv: Record<string, string>
let isHonest = true
const offered = new Map<string, Record<string, string>>([['mayfly-plugin-parrot', {}]])
const offer = (name: string, dependencies: Record<string, string>) => offered.set(name, dependencies)
beforeAll(async () => {
  const packed = gzipSync(
    writeTarball([
      { path: 'package/package.json', bytes: Buffer.from(MANIFEST) },
      { path: 'package/lib/parrot.mjs', bytes: await parrot({ version: '3.0.0' }) },
    ]),
  )
  registry = createHttpServer(({ url }, reply) => {
    if (url === '/tarball') return reply.end(isHonest ? packed : gzipSync(writeTarball([])))
    const name = url?.slice(1) ?? ''
    const dependencies = offered.get(name)
    if (dependencies === undefined) return reply.writeHead(404).end('{}')
    const integrity = `sha512-${createHash('sha512').update(packed).digest('base64')}`
    const dist = { tarball: `${npmEnv['npm_config_registry']}tarball`, integrity }
    const versions = { '3.0.0': { ...JSON.parse(MANIFEST), name, dependencies, dist } }
    const tags = { latest: '3.0.0' }
    return reply.end(JSON.stringify({ name, 'dist-tags': tags, versions }))
  }).listen(0, '127.0.0.1')
  await once(registry, 'listening')
  const { port } = registry.address() as AddressInfo
  npmEnv = { ...env, npm_config_registry: `http://127.0.0.1:${port}/`, npm_config_fetch_retries: '0' }
})
afterAll(() => registry.close())

const MANIFEST = JSON.stringify({
  name: 'mayfly-plugin-parrot',
  version: '3.0.0',
  main: 'lib/parrot.mjs',
  scripts: { install: 'touch ran', postinstall: 'touch ran' },
})
const add = (spec: string, more = {}) =>
  runCli(['plugin', 'add', spec], { env: { ...npmEnv, ...more }, cwd: folder })

test('a package becomes the same bytes each time, and none of its scripts runs', async () => {
  expect(await add('npm:mayfly-plugin-parrot@3.0.0')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Added parrot 3.0.0'),
  })
  const [first] = await readdir(plugins)
  expect((await add('npm:mayfly-plugin-parrot@3.0.0')).code).toBe(0)
  expect(await readdir(plugins)).toEqual([first])
  const files = await readTarball(await readFile(join(plugins, first ?? '')), 1e8)
  expect(files.map(({ path }) => path)).toEqual([
    'node_modules/mayfly-plugin-parrot/lib/parrot.mjs',
    'node_modules/mayfly-plugin-parrot/package.json',
    'package.json',
  ])
  const { stdout } = await mayfly('plugin', 'show', 'parrot', '--json')
  expect(JSON.parse(stdout).origin).toBe('npm:mayfly-plugin-parrot@3.0.0')
})

test('not with other bytes than those whose hash the registry states', async () => {
  isHonest = false
  const { code, stderr } = await add('npm:mayfly-plugin-parrot@3.0.0', {
    npm_config_cache: join(folder, 'cache'),
  })
  isHonest = true
  expect([code, stderr]).toEqual([1, expect.stringContaining('npm could not install')])
})

test.each([
  ['npm:mayfly-plugin-parrot', 2, 'exact version'],
  ['npm:mayfly-plugin-parrot@latest', 2, 'exact version'],
  ['npm:../evil@1.0.0', 2, 'exact version'],
  ['npm:mayfly-plugin-none@1.0.0', 1, 'npm could not install mayfly-plugin-none@1.0.0'],
])('not %s', async (spec, code, message) => {
  const end = await add(spec)
  expect([end.code, end.stderr]).toEqual([code, expect.stringContaining(message)])
})

test('without npm it says what to do', async () => {
  const { code, stderr } = await add('npm:mayfly-plugin-parrot@3.0.0', { PATH: folder })
  expect([code, stderr]).toEqual([1, expect.stringContaining('`npm pack` elsewhere')])
})

test('runs nothing of a dependency that lies in a git repository, whatever its .npmrc says', async () => {
  const marker = join(folder, 'ran')
  const repository = await newRepository(join(folder, 'evil'), {
    'package.json': JSON.stringify({
      name: 'evil',
      version: '1.0.0',
      scripts: { prepare: 'true' },
      devDependencies: { inner: 'git+https://127.0.0.1:1/inner.git' },
    }),
    '.npmrc': 'git=./evil.sh\n',
    'evil.sh': `#!/bin/sh\ntouch ${marker}\nexit 1\n`,
  })
  await chmod(folder, 0o777)
  offer('mayfly-plugin-gitty', { evil: `git+file://${repository}` })
  const { code, stderr } = await add('npm:mayfly-plugin-gitty@3.0.0')
  expect([code, stderr]).toEqual([1, expect.stringContaining('npm could not install')])
  expect(await readdir(folder)).not.toContain('ran')
  expect(await placed()).toEqual([])
})

test.each([
  ['a tarball of another server', () => `${npmEnv['npm_config_registry']}tarball`],
  ['a directory of this machine', () => `file:${folder}`],
])('takes no dependency that is %s', async (_, spec) => {
  await writeFile(join(folder, 'package.json'), MANIFEST)
  offer('mayfly-plugin-elsewhere', { 'mayfly-plugin-parrot': spec() })
  expect((await add('npm:mayfly-plugin-elsewhere@3.0.0')).code).toBe(1)
  expect(await placed()).toEqual([])
})

/** A program called npm that keeps what it was started with, and is npm. */
async function watchedNpm(version?: string): Promise<{ PATH: string; seen(): Promise<string[]> }> {
  const bin = join(folder, 'bin')
  const trace = join(folder, 'trace')
  await mkdir(bin)
  await writeFile(trace, '')
  await chmod(trace, 0o666)
  for (const directory of [world.home, folder, bin]) await chmod(directory, 0o755)
  const real = (env['PATH'] ?? '').split(':').find((one) => existsSync(join(one, 'npm')))
  const run = version === undefined ? `exec ${real}/npm "$@"` : `echo ${version}`
  const says = `{ id -u; pwd; env; cat "$npm_config_userconfig"; } >> ${trace} 2>/dev/null`
  await writeFile(join(bin, 'npm'), `#!/bin/sh\n${says}\n${run}\n`, { mode: 0o755 })
  const seen = async () => (await readFile(trace, 'utf8')).split('\n')
  return { PATH: `${bin}:${env['PATH']}`, seen }
}

test('starts npm with no variable but those that are for it, and with the registry and login of the user', async () => {
  const { PATH, seen } = await watchedNpm()
  await writeFile(join(world.home, '.npmrc'), `//registry.example/:_authToken=\${TOKEN_OF_NPM}\n`)
  const more = {
    PATH,
    TOKEN_OF_NPM: 'token-of-npm',
    MAYFLY_MASTER_KEY: 'not-for-npm',
    NODE_OPTIONS: '--no-warnings',
  }
  const end = await add('npm:mayfly-plugin-parrot@3.0.0', more)
  await rm(join(world.home, '.npmrc'))
  expect(end).toMatchObject({ code: 0 })
  const lines = await seen()
  expect(lines).toContain('//registry.example/:_authToken=token-of-npm')
  expect(lines).toContain(`npm_config_registry=${npmEnv['npm_config_registry']}`)
  expect(lines.join('\n')).not.toMatch(/not-for-npm|NODE_OPTIONS|MAYFLY_/)
})

test.runIf(process.geteuid?.() === 0)('as root starts npm as a user that owns nothing', async () => {
  const { PATH, seen } = await watchedNpm()
  expect(await add('npm:mayfly-plugin-parrot@3.0.0', { PATH })).toMatchObject({ code: 0 })
  const [uid] = await seen()
  expect(uid).toMatch(/^[1-9]\d*$/)
})

test('does not start an npm that cannot refuse git repositories', async () => {
  const { PATH } = await watchedNpm('10.9.3')
  const { code, stderr } = await add('npm:mayfly-plugin-parrot@3.0.0', { PATH })
  expect([code, stderr]).toEqual([1, expect.stringContaining('npm 11.10')])
})
