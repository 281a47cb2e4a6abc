import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Globals } from '../../src/cli/frame/options.ts'
import { createOutput } from '../../src/cli/frame/output.ts'
import type { Context } from '../../src/cli/frame/verb.ts'
import { openAdminClient } from '../../src/cli/session/admin.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { newHome, runCli } from './support.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp()
})
afterAll(() => app.close())

async function contextOf(
  globals: Globals,
  more: Record<string, string> = {},
  cwd?: string,
): Promise<Context> {
  const { home, env } = await newHome()
  const { stdin, stdout, stderr } = process
  const all = { ...env, ...more }
  return {
    stdin,
    stdout,
    stderr,
    env: all,
    cwd: cwd ?? home,
    home,
    platform: process.platform,
    now: Date.now,
    signal: new AbortController().signal,
    globals,
    verbs: [],
    out: createOutput({ stdout, stderr, env: all }, false),
  }
}

/** How `list` comes in with this context. The server records the first read of each minute. */
async function cameBy(context: Context, to = app): Promise<string | undefined> {
  to.advance(61_000)
  await list(context)
  const { entries } = (await to.local.get('/api/v1/audit?action=admin.local_access')).body
  const own = entries.find(
    (one: { details: { route: string } }) => one.details.route === 'GET /v1/admin/agents',
  )
  return own?.auth_method
}

const list = async (context: Context) => {
  const client = await openAdminClient(context)
  for await (const _ of client.admin.agents.list()) break
}

describe('on the machine of the server', () => {
  test('goes through the socket in its data directory', async () => {
    expect(await cameBy(await contextOf({ server: app.url, dataDir: app.directory }))).toBe('unix_socket')
    expect(await cameBy(await contextOf({ server: app.url }, { MAYFLY_DATA_DIR: app.directory }))).toBe(
      'unix_socket',
    )
    expect(await cameBy(await contextOf({ server: `unix:${join(app.directory, 'admin.sock')}` }))).toBe(
      'unix_socket',
    )
  })

  test('a data directory that is named is enough, and so is the one in the current directory', async () => {
    const { home } = await newHome()
    const here = await startApp({ argv: { dataDir: join(home, 'mayfly-data') } })
    try {
      expect(await cameBy(await contextOf({ dataDir: join(home, 'mayfly-data') }), here)).toBe('unix_socket')
      expect(await cameBy(await contextOf({}, {}, home), here)).toBe('unix_socket')
    } finally {
      await here.close()
    }
  })

  test('falls back to the local rule', async () => {
    expect(await cameBy(await contextOf({ server: app.url }))).toBe('loopback')
  })

  test('administers the server whose address is given, not the one of another data directory', async () => {
    const other = await startApp({ ownIssuer: true })
    try {
      expect(await cameBy(await contextOf({ server: other.url, dataDir: app.directory }), other)).toBe(
        'loopback',
      )
    } finally {
      await other.close()
    }
  })

  test('ignores a socket that a killed server left behind', async () => {
    const { home } = await newHome()
    const path = join(home, 'admin.sock')
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', script])
    expect(await cameBy(await contextOf({ server: app.url, dataDir: home }))).toBe('loopback')
  })

  test('needs the socket where the local rule is off; without it, exit code 4', async () => {
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
      {},
      { MAYFLY_DATA_DIR: app.directory, MAYFLY_SERVER: app.url, MAYFLY_TOKEN: agent.token },
    )
    await expect(list(context)).rejects.toMatchObject({ code: 'insufficient_scope' })
  })

  test('--data-dir comes before every variable', async () => {
    const agent = await app.newAgent({ scopes: ['demo:x'] })
    const variables = {
      ...{ MAYFLY_TOKEN: agent.token, MAYFLY_DATA_DIR: '/nowhere' },
      ...{ MAYFLY_SERVER: 'https://nowhere.invalid', MAYFLY_PROFILE: 'work' },
    }
    expect(await cameBy(await contextOf({ dataDir: app.directory }, variables))).toBe('unix_socket')
    const own = { MAYFLY_TOKEN: agent.token, MAYFLY_SERVER: app.url }
    expect(await cameBy(await contextOf({ dataDir: app.directory, server: app.url }, own))).toBe(
      'unix_socket',
    )
  })

  test('an administration that a login of the environment is refused says which variable to unset', async () => {
    const agent = await app.newAgent({ scopes: ['demo:x'] })
    const { home, env } = await newHome()
    const { code, stderr } = await runCli(['agent', 'ls'], {
      env: { ...env, MAYFLY_SERVER: app.url, MAYFLY_TOKEN: agent.token },
      cwd: home,
    })
    expect(code).toBe(5)
    expect(stderr).toBe(
      'mayfly: This requires the scope admin:agents:read. MAYFLY_TOKEN is set and takes precedence over the rights of a ' +
        'local administrator: unset it. Or request the scope with `mayfly request admin:agents:read`.\n',
    )
  })

  test('another address than one of this machine is not administered through the socket', async () => {
    const context = await contextOf({ server: 'https://nowhere.invalid', dataDir: app.directory })
    await expect(list(context)).rejects.toMatchObject({ exitCode: 4, code: 'not_logged_in' })
  })
})
