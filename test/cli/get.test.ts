import { execFile, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Interrupted } from '../../src/cli/frame/surroundings.ts'
import { openGate, openTerminal } from './run-support.ts'
import { runCli, spawnCli, startWorld, type World } from './support.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

interface Entry {
  credential_id: string
  metadata: unknown
  ttl: string
}
const newest = async (action: string): Promise<Entry> => {
  const reply = await world.app.admin('GET', `/v1/admin/audit?action=${action}&limit=1`)
  return (reply.body as Entry[])[0] as Entry
}
const held = async (): Promise<number> =>
  ((await world.agent.client.get('/v1/active?limit=1000')).body as unknown[]).length
const get = (...argv: string[]) => runCli(['get', ...argv], { env: world.env })

test('prints only the secret on standard output', async () => {
  const { code, stdout, stderr } = await get('demo')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
})

test('at a terminal, says on standard error what to revoke and when it ends', async () => {
  const { code, stdout, stderr } = await runCli(['get', 'demo', '--ttl', '9m'], { env: world.env, tty: true })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)])
  const { credential_id: id } = await newest('credential.issued')
  expect(stderr).toBe(`${id} expires in 9 min.\n`)
  const json = await runCli(['get', 'demo', '--json'], { env: world.env, tty: true })
  expect([json.code, json.stderr]).toEqual([0, ''])
})

test('at a terminal, says that it waits for a slow upstream', async () => {
  const gate = await openGate(world.url)
  gate.on('POST', 'hold')
  const terminal = await openTerminal(['get', 'demo'], { ...world.env, MAYFLY_SERVER: gate.url })
  await gate.held('POST')
  await terminal.said(/Waiting for demo: \d+ s/)
  gate.release('POST')
  expect(await terminal.said(/cred_\w+ expires in 10 min\./)).toContain('eyJ')
  await gate.close()
})

test('TOKEN=$(mayfly get …) in a real shell', async () => {
  const script = `TOKEN=$("$0" "$1" get demo); printf '%s' "$TOKEN"`
  const argv = ['-c', script, process.execPath, MAIN]
  const { stdout: token } = await promisify(execFile)('/bin/sh', argv, { env: world.env })
  expect(token).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
})

test('requests the given ttl, scopes and metadata', async () => {
  const { stdout } = await get(
    'demo',
    '--ttl',
    '3m',
    '--scope',
    'read',
    '--scope=write',
    '--metadata',
    'job:=7',
    '--json',
  )
  expect(JSON.parse(stdout)).toMatchObject({ backend: 'demo', ttl: '3m', scopes: ['read', 'write'] })
  expect(await newest('credential.issued')).toMatchObject({ ttl: '3m', metadata: { job: 7 } })
})

test('sends parameters to the kind, which refuses unknown ones', async () => {
  const { code, stderr, stdout } = await get('demo', '--param', 'nonsense=1')
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/^mayfly: .*\n$/)
})

describe('forms', () => {
  test('-o json and --json are the same document', async () => {
    const keys = (text: string) => Object.keys(JSON.parse(text)).sort()
    const { stdout } = await get('demo', '-o', 'json')
    expect(keys(stdout)).toEqual(['backend', 'created_at', 'expires_at', 'id', 'scopes', 'token', 'ttl'])
    expect(keys((await get('demo', '--json')).stdout)).toEqual(keys(stdout))
  })

  test('-o env is read by a shell', async () => {
    const { stdout } = await get('demo', '-o', 'env')
    const token = execFileSync('/bin/sh', ['-c', `${stdout}\nprintf '%s' "$DEMO_TOKEN"`]).toString()
    expect(stdout).toBe(`export DEMO_TOKEN='${token}'\n`)
    expect((await get('demo', '-o', 'env', '--prefix', 'gh')).stdout).toMatch(/^export GH_TOKEN='ey/)
  })

  test('-o dotenv and -o field', async () => {
    expect((await get('demo', '-o', 'dotenv')).stdout).toMatch(/^DEMO_TOKEN='ey[^']+'\n$/)
    expect((await get('demo', '-o', 'field=expires_at')).stdout).toMatch(/^2\d{3}-.*Z\n$/)
  })

  test('refuses an unknown form before anything is issued', async () => {
    const before = await held()
    const { code, stderr } = await get('demo', '-o', 'yaml')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'mayfly: Unknown output form "yaml". Use secret, json, env, dotenv or field=NAME.\n',
    })
    expect(await held()).toBe(before)
  })

  test('revokes the credential if it lacks the field', async () => {
    const before = await held()
    const { code, stderr, stdout } = await get('demo', '-o', 'field=password')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(
      'mayfly: A credential of demo has no field "password". It has: token, id, expires_at, created_at, ttl.\n',
    )
    expect(await held()).toBe(before)
  })
})

describe('refusals', () => {
  test.each<[string, string[], number, RegExp]>([
    [
      'ttl too long',
      ['demo', '--ttl', '9h'],
      5,
      /longer than the maximum of 1h.* `mayfly backends` lists the max ttl of each backend\.$/,
    ],
    ['no such backend', ['nowhere'], 1, /no such backend.*mayfly backends/],
    ['ttl that is none', ['demo', '--ttl', 'soon'], 2, /duration/],
    ['a name that would be another path', ['..'], 1, /no such backend/],
  ])('%s', async (_, argv, code, line) => {
    const ended = await get(...argv)
    expect(ended).toMatchObject({ code, stdout: '' })
    expect(ended.stderr.trimEnd()).toMatch(line)
    expect(ended.stderr.split('\n')).toHaveLength(2)
  })

  test('a scope that the agent lacks', async () => {
    const reader = await world.app.newAgent({ scopes: ['demo:read'] })
    const env = { ...world.env, MAYFLY_TOKEN: reader.token }
    const { code, stdout, stderr } = await runCli(['get', 'demo', '--scope', 'write'], { env })
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(stderr).toMatch(
      /^mayfly: .*\. List your scopes with `mayfly status`; request more with `mayfly request .*\n$/,
    )
  })

  test('as JSON with --json', async () => {
    const { code, stdout, stderr } = await get('demo', '--ttl', '9h', '--json')
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'ttl_exceeded',
        message: expect.any(String),
        hint: '`mayfly backends` lists the max ttl of each backend.',
      },
    })
  })

  test('an agent that was deleted, or has expired', async () => {
    const gone = await world.app.newAgent({ scopes: ['demo:*'] })
    await gone.client.delete('/v1/self')
    const { code, stderr } = await runCli(['get', 'demo'], {
      env: { ...world.env, MAYFLY_TOKEN: gone.token },
    })
    expect(code).toBe(4)
    expect(stderr).toMatch(
      / MAYFLY_TOKEN is set and takes precedence over a stored login\. Correct it, or unset it\.\n$/,
    )
    expect(stderr).not.toContain(gone.token)
  })
})

describe('revokes a secret that nobody received:', () => {
  test('a full disk', async () => {
    const before = await held()
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [MAIN, 'get', 'demo'], {
      env: world.env,
      stdio: ['ignore', full, 'pipe'],
    })
    let stderr = ''
    child.stderr?.on('data', (chunk) => {
      stderr += chunk
    })
    const code = await new Promise((resolve) => child.on('close', resolve))
    closeSync(full)
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'mayfly: the output: the disk is full.\n' })
    expect(await held()).toBe(before)
  })

  test('a reader that has gone away', async () => {
    const before = await held()
    const stdout = new Writable({
      write: (_, __, done) => done(Object.assign(new Error('gone'), { code: 'EPIPE' })),
    })
    stdout.on('error', () => {})
    const { code, stderr } = await runCli(['get', 'demo'], { env: world.env, stdout })
    expect({ code, stderr }).toEqual({ code: 141, stderr: '' })
    expect(await held()).toBe(before)
  })

  test('Ctrl-C together with the reply', async () => {
    const before = await held()
    const stop = new AbortController()
    // Standard output is asked for only once there is something to print.
    const stdout = new Writable({
      write: (_, __, done) => {
        stop.abort(new Interrupted(2))
        done(Object.assign(new Error('closed'), { code: 'EIO' }))
      },
    })
    stdout.on('error', () => {})
    const { code, stderr } = await runCli(['get', 'demo'], { env: world.env, signal: stop.signal, stdout })
    expect({ code, stderr }).toEqual({ code: 130, stderr: '' })
    expect(await held()).toBe(before)
  })

  test('Ctrl-C while the server is slow exits with 130 and prints nothing', async () => {
    const { createServer } = await import('node:http')
    const arrived = Promise.withResolvers<void>()
    const slow = createServer(() => arrived.resolve())
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
    const { port } = slow.address() as { port: number }
    const { child, ended } = spawnCli(['get', 'demo'], {
      env: { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${port}` },
    })
    await arrived.promise
    child.kill('SIGINT')
    expect(await ended).toEqual({ code: 130, signal: null, stdout: '', stderr: '' })
    slow.closeAllConnections()
    slow.close()
  })
})
