import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
let directory: string
let socketPath: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-socket-'))
  socketPath = join(directory, 'admin.sock')
  app = await startApp({ argv: { unixSocket: socketPath, localAdmin: 'off' } })
})

afterAll(async () => {
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

function ask(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path, headers: { host: 'localhost', ...headers } }, (response) => {
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
  const path = join(directory, 'silent.sock')
  const other = await startApp({ argv: { unixSocket: path } })
  const silent = connect(path)
  await once(silent, 'connect')
  const gone = once(silent, 'close')
  await other.close()
  await gone
  await expect(stat(path)).rejects.toThrow('ENOENT')
})

test('removes only the socket that a killed server left behind', async () => {
  const file = join(directory, 'precious')
  await writeFile(file, 'precious')
  await expect(startApp({ argv: { unixSocket: file } })).rejects.toThrow('exists and is not a socket')
  expect(await readFile(file, 'utf8')).toBe('precious')

  await expect(startApp({ argv: { unixSocket: socketPath } })).rejects.toThrow('is in use')
  expect((await ask('/v1/admin/agents')).status).toBe(200)

  const nowhere = join(directory, 'none', 'x.sock')
  await expect(startApp({ argv: { unixSocket: nowhere } })).rejects.toThrow('its directory must exist')

  const stale = join(directory, 'stale.sock')
  const script = `require('net').createServer().listen(${JSON.stringify(stale)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  expect((await stat(stale)).isSocket()).toBe(true)
  const app = await startApp({ argv: { unixSocket: stale } })
  await app.close()
})
