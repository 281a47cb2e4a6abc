import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOutput } from '../../src/cli/frame/output.ts'
import type { Context, Globals } from '../../src/cli/frame/verb.ts'
import { listenerUid, openAdminClient } from '../../src/cli/session/admin.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { newHome } from './support.ts'

let app: TestApp
let socket: string
beforeAll(async () => {
  socket = join((await newHome()).home, 'admin.sock')
  app = await startApp({ argv: { unixSocket: socket } })
})
afterAll(() => app.close())

async function contextOf(globals: Globals, more: Record<string, string> = {}): Promise<Context> {
  const { home, env } = await newHome()
  const { stdin, stdout, stderr } = process
  const all = { ...env, ...more }
  return {
    stdin,
    stdout,
    stderr,
    env: all,
    cwd: home,
    home,
    platform: process.platform,
    now: Date.now,
    signal: new AbortController().signal,
    globals,
    verbs: [],
    out: createOutput({ stdout, stderr, env: all }, false),
  }
}

/** How the newest administrator came in. */
async function cameBy(): Promise<string> {
  const { entries } = (await app.as(app.adminToken).get('/api/v1/audit?action=admin.local_access&limit=2'))
    .body
  return entries[1].auth_method
}

const list = async (context: Context) => {
  const client = await openAdminClient(context)
  for await (const _ of client.admin.agents.list()) break
}

describe('on the machine of the server', () => {
  test('by the admin token in its data directory', async () => {
    await list(await contextOf({ server: app.url, dataDir: app.directory }))
    expect(await cameBy()).toBe('admin_token')
    await list(await contextOf({ server: app.url }, { MAYFLY_DATA_DIR: app.directory }))
    expect(await cameBy()).toBe('admin_token')
  })

  test('by the local rule without one', async () => {
    await list(await contextOf({ server: app.url }))
    expect(await cameBy()).toBe('loopback')
  })

  test('by the unix socket', async () => {
    await list(await contextOf({ server: `unix:${socket}` }))
    expect(await cameBy()).toBe('unix_socket')
  })

  test('by the token where the local rule is off; without it, exit code 4', async () => {
    const strict = await startApp({ argv: { localAdmin: 'off' } })
    await list(await contextOf({ server: strict.url, dataDir: strict.directory }))
    await expect(list(await contextOf({ server: strict.url }))).rejects.toMatchObject({
      exitCode: 4,
      message: 'You are not a local administrator of this server, and you are not logged in.',
    })
    await strict.close()
  })

  test('a login that is named comes first', async () => {
    const agent = await app.newAgent({ scopes: ['demo:x'] })
    const context = await contextOf(
      { dataDir: app.directory },
      { MAYFLY_SERVER: app.url, MAYFLY_TOKEN: agent.token },
    )
    await expect(list(context)).rejects.toMatchObject({ code: 'insufficient_scope' })
  })
})

describe('the admin token goes nowhere else', () => {
  /** Somebody else's server, which writes down what it is told. */
  async function eavesdropper(host: string) {
    const heard: string[] = []
    const server = createServer((request, response) => {
      heard.push(String(request.headers.authorization))
      response.writeHead(401).end()
    })
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    const { port } = server.address() as { port: number }
    return { port, heard, close: () => server.close() }
  }

  test('not to another address, also with --data-dir', async () => {
    const context = await contextOf({ server: 'https://nowhere.invalid', dataDir: app.directory })
    await expect(list(context)).rejects.toMatchObject({ exitCode: 4, code: 'not_logged_in' })
  })

  test.runIf(process.getuid?.() === 0)(
    'not to a listener of another user than the owner of the file',
    async () => {
      const { home } = await newHome()
      const directory = join(home, 'data')
      await mkdir(directory)
      await writeFile(join(directory, 'admin.token'), 'ab'.repeat(32), { mode: 0o600 })
      const other = await asNobody()
      const context = await contextOf({ server: other.url, dataDir: directory })
      const outcome = await list(context).then(
        () => 'let in',
        (error: unknown) => error,
      )
      const heard = await other.heard()
      await other.close()
      expect(heard).toEqual(['undefined'])
      expect(outcome).toMatchObject({ exitCode: 4 })
    },
  )

  test('not where nobody listens', async () => {
    const { port, heard, close } = await eavesdropper('127.0.0.1')
    close()
    const context = await contextOf({ server: `http://127.0.0.1:${port}`, dataDir: app.directory })
    await expect(list(context)).rejects.toMatchObject({ reason: 'refused' })
    expect(heard).toEqual([])
  })

  test.each(['', 'x', 'ab'.repeat(31), `${'ab'.repeat(32)}\r\nx: y`])(
    'a file that holds none is not sent: %j',
    async (text) => {
      const { home } = await newHome()
      await writeFile(join(home, 'admin.token'), text, { mode: 0o600 })
      const { port, heard, close } = await eavesdropper('127.0.0.1')
      await list(await contextOf({ server: `http://127.0.0.1:${port}`, dataDir: home })).catch(() => {})
      expect(heard).toEqual(['undefined'])
      close()
    },
  )

  /** A server of the user `nobody`, as a process of its own. */
  async function asNobody() {
    const { spawn } = await import('node:child_process')
    const { createInterface } = await import('node:readline')
    const code = `
      const heard = []
      require('node:http').createServer((request, response) => {
        if (request.url === '/heard') { response.end(JSON.stringify(heard)); return }
        heard.push(String(request.headers.authorization)); response.writeHead(401).end()
      }).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
    const child = spawn(process.execPath, ['-e', code], {
      uid: 65_534,
      gid: 65_534,
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    process.once('exit', () => child.kill())
    const port = await new Promise<string>((resolve) => {
      if (child.stdout !== null) createInterface({ input: child.stdout }).once('line', resolve)
    })
    const url = `http://127.0.0.1:${port}`
    return {
      url,
      heard: async () => (await (await fetch(`${url}/heard`)).json()) as string[],
      close: () => new Promise((resolve) => child.once('exit', resolve) && child.kill()),
    }
  }
})

test.runIf(process.platform === 'linux')('who listens is read from the kernel', async () => {
  expect(await listenerUid(app.url)).toBe(process.getuid?.())
  expect(await listenerUid('http://127.0.0.1:9')).toBeUndefined()
})
