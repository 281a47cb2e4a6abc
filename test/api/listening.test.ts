import { once } from 'node:events'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readTls } from '../../src/app/listen.ts'
import { createHttpServer } from '../../src/http/server/server.ts'
import { startApp } from '../support/app.ts'
import { makeCertificates } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { startPostgres } from '../support/postgres.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-listening-'))
  makeCertificates(directory)
  await writeFile(join(directory, 'junk'), 'junk')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

test('localhost is one listener, however many addresses it has', async () => {
  const app = await startApp({ argv: { listen: 'localhost:0' } })
  expect(app.app.http.server.addresses()).toMatchObject([{ address: '127.0.0.1' }])
  await app.close()
})

test('a second start on the same port leaves the socket of the first', async () => {
  const postgres = await startPostgres()
  const database = await postgres.createDatabase()
  const dataDir = join(directory, 'data')
  const argv = { listen: `127.0.0.1:${await freePort()}`, dataDir }
  const first = await startApp({ databaseUrl: database.url, argv })
  try {
    await expect(startApp({ databaseUrl: database.url, argv })).rejects.toThrow('is in use')
    expect(await readdir(dataDir)).toEqual(['admin.sock', 'master.key'])
    expect((await first.local.get('/v1/admin/agents')).status).toBe(200)
  } finally {
    await first.close()
    await database.drop()
    await postgres.stop()
  }
})

test.each([
  ['none', 'server.key', 'tls_cert_file: %/none cannot be read (ENOENT)'],
  ['junk', 'server.key', 'tls_cert_file: %/junk contains no certificate in PEM form'],
  ['server.key', 'server.pem', 'tls_cert_file: %/server.key contains no certificate'],
  ['server.pem', 'none', 'tls_key_file: %/none cannot be read (ENOENT)'],
  ['server.pem', 'junk', 'tls_key_file: %/junk contains no unencrypted private key'],
  [
    'server.pem',
    'client.key',
    'tls_key_file: %/client.key is not the key of the certificate in %/server.pem',
  ],
])('the certificate %s with the key %s is refused by name', (cert, key, message) => {
  const files = { certFile: join(directory, cert), keyFile: join(directory, key) }
  expect(() => readTls(files)).toThrow(message.replaceAll('%', directory))
})

test('accepts a certificate with its key', () => {
  const files = { certFile: join(directory, 'server.pem'), keyFile: join(directory, 'server.key') }
  expect(readTls(files).cert.toString()).toContain('BEGIN CERTIFICATE')
})

test.each([
  ['says nothing', ''],
  ['begins a handshake', '\x16\x03\x01\x02\x00\x01'],
  ['speaks without TLS', 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'],
])('closes a TLS connection that %s', async (_what, bytes) => {
  const files = { certFile: join(directory, 'server.pem'), keyFile: join(directory, 'server.key') }
  const server = createHttpServer({
    tls: readTls(files),
    log: { error: () => {}, warn: () => {}, debug: () => {} },
    newRequestId: () => 'req_1',
    timeouts: { headers: 200, request: 400, check: 50 },
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  try {
    const socket = connect((server.server.address() as { port: number }).port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(bytes, 'latin1')
    await once(socket.resume(), 'close')
  } finally {
    await server.close()
  }
})
