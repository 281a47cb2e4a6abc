import { chmod, chown, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../support/run-program.ts'
import { startServerProcess } from '../support/server-process.ts'
import { newHome } from './support.ts'

const OTHER_UID = 65_534
const { home, env } = await newHome()
let place: string
let planted: string

/** A directory for temporary files, in which another user has already made the one that Node would use. */
beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'mayfly-shared-'))
  planted = join(place, 'node-compile-cache')
  await mkdir(planted)
  await chmod(place, 0o1777)
  await chmod(planted, 0o777)
  if (process.getuid?.() === 0) await chown(planted, OTHER_UID, OTHER_UID)
})
afterAll(async () => {
  for (const left of [place, home]) await rm(left, { recursive: true, force: true })
})

test.each([
  ['main.ts', ['--version']],
  ['main.ts', ['get', 'demo', '--server', 'http://127.0.0.1:9']],
  ['main.ts', ['server', '--listen', 'nonsense']],
  ['docker-credential.ts', ['list']],
  ['terraform-credentials.ts', ['get', 'app.terraform.io']],
])('%s %j uses no code cache in a directory of another user', async (file, argv) => {
  const main = fileURLToPath(new URL(`../../src/cli/${file}`, import.meta.url))
  const tell = `process.on('exit', () => {
    process.stderr.write('cache: ' + process.getBuiltinModule('node:module').getCompileCacheDir() + '\\n')
  })`
  const preload = `data:text/javascript,${encodeURIComponent(tell)}`
  const end = await run([process.execPath, '--import', preload, main, ...argv], { ...env, TMPDIR: place })
  expect(end.stderr).toContain('cache: undefined')
  expect(await readdir(place, { recursive: true })).toEqual(['node-compile-cache'])
})

test('SIGUSR1 opens no debugger on the server', async () => {
  const server = await startServerProcess({ dataDir: join(home, 'server'), flags: ['--quickstart'] })
  server.signal('SIGUSR1')
  expect((await server.call(undefined, 'GET', '/health')).status).toBe(200)
  expect(await server.terminate()).toEqual({ code: 0, signal: null })
  expect(server.logged()).not.toContain('Debugger')
})
