import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { run } from '../support/run-program.ts'
import { type BuiltServer, consoleStatus, startLine } from './built-server.ts'
import { makeFreshRoot } from './fresh-root.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const VERSION = '0.2.9'
const MINUTES = 60_000
const IMAGE = 'localhost/mayfly'
const ENV = { PATH: process.env['PATH'] ?? '', HOME: '/root' }

/** The server in the container, which chroot isolation shows among the processes of the machine. */
function pidInside(address: string): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.find((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      return words[0] === '/usr/bin/mayfly' && words.includes(address)
    } catch {
      return false
    }
  })
  if (found === undefined) throw new Error('no server runs in the container')
  return Number(found)
}

/**
 * The Containerfile as it is, built by buildah without a daemon. No registry is asked: its base is a fresh Debian under the same name. In
 * chroot isolation a container has the network of the machine.
 */
describe('the container image', { timeout: 10 * MINUTES }, () => {
  let folder: string
  let container: string
  let server: BuiltServer | undefined
  let port: number

  const words = (...argv: string[]) => {
    const places = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run')]
    return ['buildah', ...places, '--storage-driver', 'vfs', ...argv]
  }
  const buildah = (...argv: string[]) => {
    const [program = '', ...args] = words(...argv)
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
  }
  const inside = (...argv: string[]) => words('run', '--isolation', 'chroot', container, '--', ...argv)
  const mayfly = async (...argv: string[]) => {
    const end = await run(inside('/usr/bin/mayfly', ...argv, '--data-dir', '/var/lib/mayfly', '--json'), ENV)
    expect(end).toMatchObject({ code: 0 })
    return JSON.parse(end.stdout)
  }
  /** As an engine starts it, but for the port. */
  const start = async () => {
    const image = JSON.parse(buildah('inspect', '--type', 'image', IMAGE))
    const { Entrypoint, Cmd, User } = image.OCIv1.config
    expect(User).toBe('mayfly')
    server = await startLine(inside(...Entrypoint, ...Cmd, '--listen', `127.0.0.1:${port}`), ENV)
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-image-'))
    port = await freePort()
    const context = join(folder, 'context')
    const packages = join(context, 'dist-package')
    await mkdir(packages, { recursive: true })
    execFileSync(
      process.execPath,
      [here('../../scripts/package.ts'), '--version', VERSION, '--out', packages],
      { stdio: 'inherit' },
    )
    await copyFile(here('../../Containerfile'), join(context, 'Containerfile'))
    const root = makeFreshRoot(join(folder, 'root'))
    try {
      execFileSync('umount', [join(root.directory, 'proc')])
      const base = buildah('from', 'scratch')
      buildah('add', '--quiet', base, root.directory, '/')
      buildah('commit', '--quiet', base, 'docker.io/library/debian:12-slim')
    } finally {
      root.remove()
    }
    buildah(
      'build',
      '--isolation',
      'chroot',
      '--pull-never',
      '-f',
      join(context, 'Containerfile'),
      '-t',
      'mayfly',
      context,
    )
    container = buildah('from', '--pull-never', IMAGE)
  }, 10 * MINUTES)
  afterAll(async () => {
    if (server !== undefined) {
      process.kill(pidInside(`127.0.0.1:${port}`), 'SIGTERM')
      await server.ended
    }
    await rm(folder, { recursive: true, force: true })
  })

  test('starts as its own user and issues a credential', async () => {
    await start()
    const { stdout } = await run(inside('stat', '-c', '%U %a', '/var/lib/mayfly/admin.sock'), ENV)
    expect(stdout).toBe('mayfly 600\n')
    await mayfly('backend', 'add', 'jwt', 'demo', '--audience', 'demo')
    const { token } = await mayfly('agent', 'create', 'first', '--scope', 'demo')
    const reply = await fetch(`http://127.0.0.1:${port}/api/v1/credentials`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ backend: 'demo' }),
    })
    expect(reply.status).toBe(201)
    expect(await reply.json()).toMatchObject({ token: expect.stringMatching(/^eyJ/) })
    const console = await consoleStatus({ address: `http://127.0.0.1:${port}` })
    expect(console.length).toBeGreaterThan(2)
    expect(new Set(console)).toEqual(new Set([200]))
  })

  test('reloads, and keeps its data in the volume over a restart', async () => {
    const end = await run(
      inside('/usr/bin/mayfly', 'server', 'reload', '--config', '/etc/mayfly/mayfly.yaml'),
      ENV,
    )
    expect(end).toMatchObject({ code: 0, stdout: 'Reloaded. Nothing has changed.\n' })
    // As an engine does: buildah passes no signal on.
    process.kill(pidInside(`127.0.0.1:${port}`), 'SIGTERM')
    expect(await server?.ended).toBe(0)
    await start()
    expect((await mayfly('agent', 'ls')).map(({ name }: { name: string }) => name)).toEqual(['first'])
  })
})
