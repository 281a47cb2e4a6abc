import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withSocketPath } from '../../src/files/admin-socket.ts'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let directory: string
let socketPath: string

beforeAll(async () => {
  app = await startApp({ argv: { localAdmin: 'off' } })
  directory = app.directory
  socketPath = join(directory, 'admin.sock')
})
afterAll(() => app.close())

function ask(
  path: string,
  headers: Record<string, string> = {},
  at = socketPath,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    request({ socketPath: at, path, headers: { host: 'localhost', ...headers } }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
      .once('error', reject)
      .end()
  })
}

test('a process that may open the socket is an administrator, and the audit records the method', async () => {
  expect((await stat(socketPath)).mode & 0o777).toBe(0o600)
  expect(await ask('/v1/admin/agents')).toEqual({ status: 200, body: '[]' })
  const audit = JSON.parse((await ask('/v1/admin/audit?action=admin.local_access')).body)
  expect(audit.map((entry: { auth_method: string }) => entry.auth_method)).toContain('unix_socket')
})

test('a bad token on the socket is a bad token', async () => {
  expect((await ask('/v1/admin/agents', { authorization: 'Bearer nonsense' })).status).toBe(401)
})

test('does not take a TCP connection for the socket', async () => {
  expect((await app.as(undefined).get('/v1/admin/agents')).status).toBe(401)
})

/** What comes back for these bytes until the other side closes. */
function sendRaw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath, () => socket.write(bytes))
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
    })
    socket.once('close', () => resolve(text))
    socket.once('error', reject)
  })
}

test.each([
  ['no HTTP', 'GARBAGE\r\n\r\n', 400, 'invalid_request'],
  [
    'endless headers',
    `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  [
    'an expectation',
    'GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: x\r\nConnection: close\r\n\r\n',
    400,
    'invalid_request',
  ],
  ['no host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
])('it has the limits and the error shape of the port: %s', async (_what, bytes, status, code) => {
  const reply = await sendRaw(bytes)
  expect(reply).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  const body = reply.slice(reply.indexOf('\r\n\r\n') + 4)
  expect(JSON.parse(body)).toMatchObject({ error: { code } })
})

test('a silent connection does not delay the shutdown', async () => {
  const other = await startApp()
  const path = join(other.directory, 'admin.sock')
  const silent = connect(path)
  await once(silent, 'connect')
  const gone = once(silent, 'close')
  await other.close()
  await gone
  await expect(stat(path)).rejects.toThrow('ENOENT')
})

test('replaces the socket that a killed server left behind, and removes its own at the end', async () => {
  const data = await mkdtemp(join(tmpdir(), 'mayfly-socket-'))
  const path = join(data, 'admin.sock')
  const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  expect((await stat(path)).isSocket()).toBe(true)
  const other = await startApp({ argv: { dataDir: data } })
  expect((await other.local.get('/v1/admin/agents')).status).toBe(200)
  expect((await readdir(data)).filter((name) => name.startsWith('admin.sock'))).toEqual(['admin.sock'])
  await other.close()
  await expect(stat(path)).rejects.toThrow('ENOENT')
  await rm(data, { recursive: true })
})

test('refuses to start where the socket of another process or another file is', async () => {
  const data = await mkdtemp(join(tmpdir(), 'mayfly-socket-'))
  const path = join(data, 'admin.sock')
  await writeFile(path, 'precious')
  await expect(startApp({ argv: { dataDir: data } })).rejects.toThrow('exists and is not a socket')
  expect(await readFile(path, 'utf8')).toBe('precious')

  await rm(path)
  const busy = createServer().listen(path)
  await once(busy, 'listening')
  await expect(startApp({ argv: { dataDir: data } })).rejects.toThrow('is in use, perhaps by another Mayfly')
  expect((await stat(path)).isSocket()).toBe(true)
  busy.close()
  await once(busy, 'close')
  await rm(data, { recursive: true })
})

test.runIf(process.platform === 'linux')('works in a data directory with a long path', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-socket-'))
  const data = join(folder, 'a'.repeat(120), 'data')
  const other = await startApp({ argv: { dataDir: data } })
  try {
    expect((await stat(join(data, 'admin.sock'))).mode & 0o777).toBe(0o600)
    const agents = await withSocketPath(join(data, 'admin.sock'), (path) => ask('/v1/admin/agents', {}, path))
    expect(agents.status).toBe(200)
  } finally {
    await other.close()
    await rm(folder, { recursive: true })
  }
})
