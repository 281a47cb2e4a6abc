import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sha256Of } from '../../src/app/plugins/artefacts.ts'
import { makeCertificates } from '../support/certificates.ts'
import { parrot } from '../support/plugin-artefact.ts'
import { runCli, startWorld, type World } from './support.ts'

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
const save = async (name: string, bytes: string | Uint8Array) => {
  await writeFile(join(folder, name), bytes)
  return sha256Of(Buffer.from(bytes))
}

test('add, ls, show, reload and rm of a file', async () => {
  const sha256 = await save('parrot.mjs', await parrot())
  const added = await mayfly('plugin', 'add', './parrot.mjs')
  expect(added).toEqual({
    code: 0,
    stdout: '',
    stderr:
      `Added parrot 1.0.0, with the SHA-256 ${sha256}.\n` +
      'Its flags: `mayfly kind show parrot`. Use it: `mayfly backend add parrot`.\n',
  })
  expect(await readdir(plugins)).toEqual([sha256])
  expect((await mayfly('plugin', 'ls')).stdout).toMatch(
    /^KIND +VERSION +FROM\nparrot +1\.0\.0 +file:parrot\.mjs\n[\s\S]*^jwt +\S+ +built in$/m,
  )
  expect((await mayfly('plugin', 'show', 'parrot')).stdout).toContain(sha256)
  expect(JSON.parse((await mayfly('plugin', 'show', 'parrot', '--json')).stdout)).toMatchObject({
    builtin: false,
    protocol: 'mayfly.plugin.v1',
    runtime: 'node',
    sha256,
  })
  expect((await mayfly('kind', 'show', 'parrot')).stdout).toContain('--password-file')
  expect((await mayfly('plugin', 'reload', 'parrot')).stdout).toBe('Reloaded: parrot.\n')
  expect((await mayfly('plugin', 'rm', 'parrot')).code).toBe(2)
  expect(await mayfly('plugin', 'rm', 'parrot', '--yes')).toMatchObject({
    code: 0,
    stdout: 'Removed parrot.\n',
  })
  expect(await readdir(plugins)).toEqual([])
  expect((await mayfly('plugin', 'show', 'parrot')).stderr).toContain('mayfly plugin ls')
})

describe('--sha256', () => {
  test('must match what was read, before anything is placed', async () => {
    const sha256 = await save('parrot.mjs', await parrot())
    const { code, stderr } = await mayfly('plugin', 'add', 'parrot.mjs', '--sha256', 'a'.repeat(64))
    expect([code, stderr]).toEqual([1, expect.stringContaining(`has the SHA-256 ${sha256}, and not`)])
    expect((await mayfly('plugin', 'add', 'parrot.mjs', '--sha256', sha256.toUpperCase())).code).toBe(0)
  })

  test.each([[['--sha256']], [['--sha256', '']], [['--sha256', 'abc']]])(
    'requires a value: %j',
    async (options) => {
      await save('parrot.mjs', await parrot())
      expect((await mayfly('plugin', 'add', 'parrot.mjs', ...options)).code).toBe(2)
    },
  )
})

test.each([
  ['notes.txt', 'hello', 2, 'neither a program'],
  ['plugin.ts', 'export {}', 2, 'TypeScript must be compiled first'],
  ['broken.mjs', 'process.exit(3)', 2, 'The plugin was not added'],
  ['none.tgz', undefined, 1, 'does not exist'],
])('%s cannot be added', async (name, text, code, message) => {
  if (text !== undefined) await save(name, text)
  const end = await mayfly('plugin', 'add', name)
  expect([end.code, end.stderr]).toEqual([code, expect.stringContaining(message)])
})

describe('from https', () => {
  let server: Server
  let address: string
  const usual = getCACertificates('default')
  beforeAll(async () => {
    const { server: own } = makeCertificates(await mkdtemp(join(world.home, 'tls-')))
    setDefaultCACertificates([...usual, own.ca])
    const code = await parrot()
    server = createServer({ cert: own.cert, key: own.key }, ({ url = '' }, reply) => {
      if (url.startsWith('/old')) reply.writeHead(302, { location: '/parrot.mjs?signature=s' }).end()
      else if (url.startsWith('/http')) reply.writeHead(302, { location: 'http://127.0.0.1/x' }).end()
      else if (url.startsWith('/parrot.mjs')) reply.end(code)
      else reply.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    address = `https://localhost:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => {
    setDefaultCACertificates(usual)
    server.close()
  })

  test('with the hash of its author, also after a redirection', async () => {
    const sha256 = sha256Of(await parrot())
    const { code } = await mayfly('plugin', 'add', `${address}/old.mjs?token=t`, '--sha256', sha256)
    expect(code).toBe(0)
    // Without what may be secret.
    const { stdout } = await mayfly('plugin', 'show', 'parrot', '--json')
    expect(JSON.parse(stdout).origin).toBe(`${address}/old.mjs`)
  })

  test('without it only after a person has compared it', async () => {
    const sha256 = sha256Of(await parrot())
    const alone = await mayfly('plugin', 'add', `${address}/parrot.mjs`)
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining(`--sha256 ${sha256}`)])
    const ask = (stdin: string) =>
      runCli(['plugin', 'add', `${address}/parrot.mjs`], { env, cwd: folder, tty: true, stdin })
    const no = await ask('n\n')
    expect([no.code, no.stderr]).toEqual([1, expect.stringContaining(`SHA-256: ${sha256}`)])
    expect(await readdir(plugins)).toEqual([])
    expect((await ask('y\n')).code).toBe(0)
  })

  test.each([
    ['/none', 3, 'answered with status 404'],
    ['/http', 2, 'over https:// only'],
  ])('not from %s', async (path, code, message) => {
    const end = await mayfly('plugin', 'add', `${address}${path}`, '--sha256', 'a'.repeat(64))
    expect([end.code, end.stderr]).toEqual([code, expect.stringContaining(message)])
  })

  test('not from http', async () => {
    const { code, stderr } = await mayfly('plugin', 'add', 'http://localhost/parrot.mjs')
    expect([code, stderr]).toEqual([2, expect.stringContaining('over https:// only')])
  })
})

test('a directory that others can write to gets no plugin', async () => {
  await save('parrot.mjs', await parrot())
  await mkdir(plugins, { recursive: true })
  await chmod(plugins, 0o777)
  const { code, stderr } = await mayfly('plugin', 'add', 'parrot.mjs')
  await chmod(plugins, 0o700)
  expect([code, stderr]).toEqual([1, expect.stringContaining(`Run: chmod go-w ${plugins}`)])
})

test('without the server, or as somebody else, it says where it looked', async () => {
  await save('parrot.mjs', await parrot())
  const { code, stderr } = await mayfly('plugin', 'add', 'parrot.mjs', '--data-dir', folder)
  expect([code, stderr]).toEqual([3, expect.stringContaining(`${folder}/admin.sock`)])
})
