import { closeSync, openSync } from 'node:fs'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Backend } from '../../src/backends/kind.ts'
import { type Isolation, pidSpace } from '../../src/plugins/process/isolation.ts'
import type { Program } from '../../src/plugins/process/program.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { createTestHost } from '../support/host.ts'
import { nodeProgram, pluginKind, supportPlugin } from '../support/plugin.ts'

const HOSTILE = supportPlugin('hostile-plugin.ts')
const MARKER = 'marker-of-the-isolation-test'
/** Of what the kernel protects, root gets everything; so that needs another user. */
const IS_ROOT = process.getuid?.() === 0
/** In a PID namespace of its own, a plugin does not see the process of the server. */
const SIGNALS = pidSpace() === undefined ? ['end of the server'] : []
const NOBODY = { uid: 65_534, gid: 65_534 }

let app: TestApp
let directory: string
let kept: number
const opened: Backend[] = []

beforeAll(async () => {
  app = await startApp()
  directory = await mkdtemp(join(tmpdir(), 'mayfly-isolation-'))
  await chmod(directory, 0o755)
  await writeFile(join(directory, 'kept'), MARKER)
  kept = openSync(join(directory, 'kept'), 'r')
})
afterAll(async () => {
  await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
  if (kept !== undefined) closeSync(kept)
  await app?.close()
  await rm(directory, { recursive: true, force: true })
})

async function open(program: Program, isolation: Isolation, otherSocket: string): Promise<Backend> {
  const kind = await pluginKind(program, isolation)
  const targets = {
    master_key: join(app.directory, 'master.key'),
    store: join(app.directory, 'mayfly.db'),
    admin_socket: join(app.directory, 'admin.sock'),
    server: process.pid,
    other_socket: otherSocket,
    marker: MARKER,
    trace: join(tmpdir(), MARKER),
  }
  const backend = await kind.open(targets, createTestHost('hostile').host)
  opened.push(backend)
  return backend
}

/** What it got, beside another plugin that runs as it does. */
async function gotBy(program: Program, isolation: Isolation): Promise<readonly string[]> {
  const before = await sockets()
  await open(program, isolation, '/none')
  const [other = ''] = (await sockets()).filter((path) => !before.includes(path))
  const hostile = await open(program, isolation, other)
  const results = await hostile.check(AbortSignal.timeout(60_000))
  await rm(join(tmpdir(), MARKER), { force: true })
  expect(results).toHaveLength(13)
  return results.filter((one) => one.endsWith(': got')).map((one) => one.replace(': got', ''))
}

async function sockets(): Promise<string[]> {
  const places = (await readdir(tmpdir())).filter((name) => name.startsWith('mayfly-plugin-'))
  const found = places.map(async (name) => {
    const place = join(tmpdir(), name, 's')
    return (await readdir(place).catch(() => [])).map((socket) => join(place, socket))
  })
  return (await Promise.all(found)).flat()
}

it('has what the plugin looks for', async () => {
  for (const name of ['master.key', 'mayfly.db', 'admin.sock'])
    expect(await readdir(app.directory)).toContain(name)
  expect(await readFile(join(directory, 'kept'), 'utf8')).toBe(MARKER)
})

it.runIf(IS_ROOT)('gives nothing to a plugin that runs as another user', async () => {
  expect(await gotBy(nodeProgram(HOSTILE), { user: NOBODY })).toEqual([])
})

it('gives a plugin that runs as the server no file, process or descriptor', async () => {
  // What Node's permission model does not cover, as the documentation says.
  expect(await gotBy(nodeProgram(HOSTILE), {})).toEqual(['admin.sock', ...SIGNALS])
})

it('would give a program without the permission model everything but what the server itself protects', async () => {
  const entry = join(directory, 'hostile')
  await writeFile(entry, `#!${process.execPath}\nimport(${JSON.stringify(HOSTILE)})\n`, { mode: 0o755 })
  const program: Program = { runtime: 'executable', entry, folder: directory, close: async () => undefined }
  // A worker reserves memory for code, which the usual limit does not always leave.
  expect(await gotBy(program, { memoryBytes: 8 * 1024 ** 3 })).toEqual([
    ...['master key', 'store', 'store as a database', 'admin.sock', 'environment of the server'],
    ...['child process', 'worker', 'list of descriptors', 'new file', ...SIGNALS],
  ])
})
