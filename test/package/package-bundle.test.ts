import { spawnSync } from 'node:child_process'
import {
  chmod,
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundle } from '../../scripts/bundle/bundle.ts'
import { buildWeb } from '../support/built-web.ts'
import { run } from '../support/run-program.ts'
import { poll } from '../support/server-process.ts'
import { type BuiltServer, consoleStatus, docsStatus, startBuilt } from './built-server.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** As `dist`, below the repository, so that Node finds our dependencies from there. */
const dist = join(root, 'node_modules/.cache/mayfly-bundle')
const place = join(dist, 'bin')
const main = join(place, 'mayfly.cjs')
let home: string
let server: BuiltServer
const env = () => ({ PATH: process.env['PATH'] ?? '', HOME: home, MAYFLY_KEYCHAIN: 'off' })
const mayfly = (argv: readonly string[], more: Record<string, string> = {}) =>
  run([process.execPath, main, ...argv], { ...env(), ...more })

beforeAll(async () => {
  await rm(dist, { recursive: true, force: true })
  await buildWeb()
  await cp(join(root, 'dist/web'), join(dist, 'web'), { recursive: true })
  await bundle({ form: 'files', version: '9.8.7', directory: place, flags: [] })
  home = await mkdtemp(join(tmpdir(), 'mayfly-bundle-'))
  server = await startBuilt([process.execPath, main], join(home, 'data'), env())
})
afterAll(async () => {
  await server.stop()
  await rm(home, { recursive: true })
  await rm(dist, { recursive: true })
})

test('the bundle knows its version', async () => {
  expect(await mayfly(['--version'])).toEqual({ code: 0, stdout: '9.8.7\n', stderr: '' })
})

test('a server and a command from the bundle issue a credential', async () => {
  const got = await mayfly(['get', 'demo'], { MAYFLY_TOKEN: server.token, MAYFLY_SERVER: server.address })
  expect(got).toMatchObject({ code: 0, stdout: expect.stringMatching(/^eyJ/), stderr: '' })
})

test('a server from the bundle has the console', async () => {
  const status = await consoleStatus(server)
  expect(status.length).toBeGreaterThan(2)
  expect(new Set(status)).toEqual(new Set([200]))
})

test('a server from the bundle has its documentation, keys and signing keys', async () => {
  expect(new Set(await docsStatus(server))).toEqual(new Set([200]))
  expect(await (await fetch(`${server.address}/.well-known/jwks.json`)).json()).toMatchObject({
    keys: [{ kty: 'RSA', x5c: [expect.any(String)] }],
  })
  const named = { MAYFLY_TOKEN: server.token, MAYFLY_SERVER: server.address }
  expect(await mayfly(['signing-key'], named)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('PGP'),
  })
})

test('a server and an enrollment from the bundle print no warning of Node', async () => {
  const discovery = await fetch(`${server.address}/.well-known/openid-configuration`)
  const { issuer } = (await discovery.json()) as { issuer: string }
  const at = ['--server', server.address, '--issuer', issuer]
  const enrolling = ['enroll', '--name', 'quiet', '--scope', 'demo', '--no-wait', ...at]
  const { code, stderr } = await mayfly(enrolling)
  expect(code).toBe(0)
  expect(`${stderr}${server.logged()}`).not.toContain('Warning:')
})

test('the command starts from what V8 compiled at build time', async () => {
  const names = await readdir(place)
  const compiled = names
    .filter((name) => name.endsWith('.compiled'))
    .map((name) => name.replace('.compiled', ''))
  expect(compiled).toContain('start.cjs')
  // V8 drops compiled code that it does not take for its own.
  const check = `const { Script } = require('node:vm'), { readFileSync } = require('node:fs')
    for (const name of process.argv.slice(1)) {
      const cachedData = readFileSync(name + '.compiled')
      console.log(new Script(readFileSync(name, 'utf8'), { filename: name, cachedData }).cachedDataRejected)
    }`
  const { stdout } = await run(
    [process.execPath, '-e', check, ...compiled.map((name) => join(place, name))],
    env(),
  )
  expect(stdout).toBe('false\n'.repeat(compiled.length))
})

test('what `mayfly get` loads first needs only modules that Node has loaded anyway', async () => {
  const name = (await readdir(place)).find((one) => /^front-.*\.cjs$/.test(one)) ?? ''
  const text = await readFile(join(place, name), 'utf8')
  const needed = [...text.matchAll(/= require\("(node:[^"]+|[^.m][^"]*)"\)/g)].map(([, id]) => id)
  expect(needed.filter((id) => !['node:fs', 'node:path', 'node:url'].includes(id ?? ''))).toEqual([])
})

test('the command works with compiled code that V8 refuses, and without any', async () => {
  const copy = join(place, 'copy')
  await mkdir(copy)
  for (const name of await readdir(place))
    if (name.endsWith('.cjs')) await copyFile(join(place, name), join(copy, name))
  const version = () => run([process.execPath, join(copy, 'mayfly.cjs'), '--version'], env())
  expect(await version()).toMatchObject({ code: 0, stdout: '9.8.7\n', stderr: '' })
  for (const name of await readdir(copy)) await writeFile(join(copy, `${name}.compiled`), 'not compiled code')
  expect(await version()).toMatchObject({ code: 0, stdout: '9.8.7\n', stderr: '' })
})

test('the programs of other tools are verbs of the same bundle', async () => {
  const named = { MAYFLY_TOKEN: server.token, MAYFLY_SERVER: server.address }
  const told = await run([process.execPath, join(place, 'docker-credential-mayfly.cjs'), 'list'], {
    ...env(),
    ...named,
  })
  expect(told).toEqual({ code: 0, stdout: '{}\n', stderr: '' })
})

test('what it writes for other programs calls the bundle by its file', async () => {
  const repository = join(home, 'repository')
  await run(['git', 'init', '--quiet', repository], env())
  const login = { MAYFLY_TOKEN: server.token, MAYFLY_SERVER: server.address }
  const done = await run(
    [process.execPath, main, 'git', 'setup', '--host', 'git.example.com', '--backend', 'demo'],
    { ...env(), ...login },
    { cwd: repository },
  )
  expect(done).toMatchObject({ code: 0 })
  const { stdout } = await run(['git', 'config', '--get-regexp', 'helper'], env(), { cwd: repository })
  expect(stdout).toContain(`${process.execPath} ${main} git-credential`)
})

describe('an older Node', () => {
  const older = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((directory) => join(directory, 'node'))
    .filter((node) => {
      const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
      return stdout !== null && Number(/^v(\d+)/.exec(stdout)?.[1] ?? 99) < 24
    })
  const pretend = `data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.19.0' } })`,
  )}`

  test.each([[process.execPath, '--import', pretend], ...older.map((node) => [node])])(
    'is told the two ways out: %s',
    async (...node) => {
      const { code, stdout, stderr } = await run([...node, main, 'get', 'demo'], env())
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^mayfly needs Node\.js 24 or later; this is \d+\.\d+\.\d+\./)
      expect(stderr).toContain('package of Mayfly, which needs no Node.js')
      expect(stderr).toContain('npx -p node@24 mayfly')
    },
  )
})

test('the command uses no code from a directory that others can write', async () => {
  const shared = await mkdtemp(join(tmpdir(), 'mayfly-shared-'))
  const planted = join(shared, 'node-compile-cache')
  await mkdir(planted)
  await chmod(shared, 0o1777)
  await chmod(planted, 0o777)
  const elsewhere = await mkdtemp(join(tmpdir(), 'mayfly-elsewhere-'))
  await symlink(main, join(elsewhere, 'mayfly'))
  await writeFile(join(elsewhere, 'start.cjs'), 'throw new Error("planted")')
  await writeFile(join(elsewhere, 'start.cjs.compiled'), 'planted')
  const end = await run(
    [process.execPath, join(elsewhere, 'mayfly'), '--version'],
    { ...env(), TMPDIR: shared },
    { cwd: elsewhere },
  )
  expect(end).toEqual({ code: 0, stdout: '9.8.7\n', stderr: '' })
  expect(await readdir(planted)).toEqual([])
  for (const left of [shared, elsewhere]) await rm(left, { recursive: true })
})

test('SIGUSR1 opens no debugger on a server from the bundle', async () => {
  server.signal('SIGUSR1')
  await poll('an answer after the signal', async () => (await fetch(`${server.address}/health`)).ok)
  expect(server.logged()).not.toContain('Debugger')
})
