import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../support/run-program.ts'
import { type BuiltServer, consoleStatus, startBuilt } from './built-server.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MINUTES = 60_000

describe('the package of npm', { timeout: 10 * MINUTES }, () => {
  let folder: string
  let tarball: string
  /** The Node.js of this test comes first. */
  const path = `${dirname(process.execPath)}:${process.env['PATH']}`
  const env = (more: Record<string, string> = {}) => ({ PATH: path, HOME: folder, ...more })
  /** npm finds its registry, and what it trusts, in the environment of this process. */
  const npmEnv = { ...(process.env as Record<string, string>), PATH: path }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-npm-'))
    const packed = await run(['npm', 'pack', '--silent', '--pack-destination', folder], npmEnv, { cwd: ROOT })
    expect(packed).toMatchObject({ code: 0 })
    tarball = join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
  }, 10 * MINUTES)
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('installed into an empty prefix it brings what a server and a command need', async () => {
    const prefix = join(folder, 'prefix')
    const done = await run(['npm', 'install', '--global', '--prefix', prefix, '--no-audit', tarball], npmEnv)
    expect(done).toMatchObject({ code: 0 })
    expect(await readdir(join(prefix, 'bin'))).toEqual([
      'docker-credential-mayfly',
      'mayfly',
      'terraform-credentials-mayfly',
    ])
    const mayfly = join(prefix, 'bin/mayfly')
    const server: BuiltServer = await startBuilt([mayfly], join(folder, 'data'), env())
    const login = { MAYFLY_TOKEN: server.token, MAYFLY_SERVER: server.address }
    expect(await run([mayfly, 'get', 'demo'], env(login))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^eyJ/),
    })
    expect(await run([join(prefix, 'bin/docker-credential-mayfly'), 'list'], env(login))).toMatchObject({
      code: 0,
      stdout: '{}\n',
    })
    const console = await consoleStatus(server)
    expect(console.length).toBeGreaterThan(2)
    expect(new Set(console)).toEqual(new Set([200]))
    expect(await server.stop()).toBe(0)
  })

  test('npx runs it without installing it', async () => {
    const { code, stdout } = await run(
      ['npx', '--yes', '--package', tarball, 'mayfly', '--version'],
      npmEnv,
      {
        cwd: folder,
      },
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  test('npx brings a Node.js for it, as the command suggests to an older one', async () => {
    const older = { ...npmEnv, PATH: '/usr/local/bin:/usr/bin:/bin' }
    const words = ['npx', '--yes', '--package', 'node@24', '--package', tarball, 'mayfly', '--version']
    const { code, stdout } = await run(words, older, { cwd: folder })
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})
