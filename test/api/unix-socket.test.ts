import { mkdtemp, rm, stat } from 'node:fs/promises'
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

test('a connection that says nothing does not hold up the end', async () => {
  const path = join(directory, 'other.sock')
  const other = await startApp({ argv: { unixSocket: path, localAdmin: 'off' } })
  const silent = connect(path)
  await new Promise((resolve) => silent.once('connect', resolve))
  const cut = new Promise((resolve) => silent.once('close', resolve))
  await other.close()
  await cut
})

test('whoever may open the socket is an administrator, and the audit says how they came', async () => {
  expect((await stat(socketPath)).mode & 0o777).toBe(0o600)
  expect(await ask('/v1/admin/agents')).toEqual({ status: 200, body: '[]' })
  const audit = JSON.parse((await ask('/v1/admin/audit?action=admin.local_access')).body)
  expect(audit.map((entry: { auth_method: string }) => entry.auth_method)).toContain('unix_socket')
})

test('a bad token on the socket is a bad token', async () => {
  expect((await ask('/v1/admin/agents', { authorization: 'Bearer nonsense' })).status).toBe(401)
})

test('what comes by TCP is not taken for the socket', async () => {
  expect((await app.as(undefined).get('/v1/admin/agents')).status).toBe(401)
})
