import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { type OwnPostgres, startOwnPostgres } from '../support/postgres.ts'
import { startPostgresProxy } from '../support/postgres-proxy.ts'
import { poll, type ServerProcess, startingServer } from '../support/server-process.ts'

let database: OwnPostgres
let dataDir: string
const ends: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await startOwnPostgres()
})
afterAll(() => database.stop())
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A start that is not waited for. */
async function begin(databaseUrl: string) {
  dataDir = await mkdtemp(join(tmpdir(), 'mayfly-late-'))
  ends.push(() => rm(dataDir, { recursive: true, force: true }))
  const starting = startingServer({ dataDir, databaseUrl, flags: ['--issuer', 'http://127.0.0.1:8620'] })
  ends.push(() => starting.kill())
  return starting
}

async function serves(server: ServerProcess) {
  expect((await server.call(undefined, 'GET', '/readyz')).status).toBe(200)
  expect((await server.call(undefined, 'GET', '/v1/admin/agents')).status).toBe(200)
}

const at = (port: number, url: string) => {
  const to = new URL(url)
  to.port = String(port)
  return to.href
}

test('waits for a database whose port is closed, and serves once it is open', async () => {
  const port = await freePort()
  const { url } = await database.createDatabase()
  const starting = await begin(at(port, url))
  await starting.said('"why":"nothing listens at its address"')
  const proxy = await startPostgresProxy(database, undefined, port)
  ends.push(() => proxy.close())
  await serves(await starting.listening)
})

test('waits for a database that accepts connections and says nothing', { timeout: 120_000 }, async () => {
  const open = new Set<Socket>()
  const mute = createServer((socket) => void open.add(socket.on('error', () => undefined)))
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
  const { port } = mute.address() as { port: number }
  const { url } = await database.createDatabase()
  const starting = await begin(at(port, url))
  await starting.said('"why":"it does not answer"')
  for (const socket of open) socket.destroy()
  await new Promise((resolve) => mute.close(resolve))
  const proxy = await startPostgresProxy(database, undefined, port)
  ends.push(() => proxy.close())
  await serves(await starting.listening)
})

test('waits for a database that is starting up', async () => {
  const own = await startOwnPostgres()
  ends.push(() => own.stop())
  const { url } = await own.createDatabase()
  // A standby that answers no queries says 57P03 until it is promoted.
  await own.halt()
  await writeFile(join(own.directory, 'standby.signal'), '')
  await appendFile(join(own.directory, 'postgresql.auto.conf'), 'hot_standby = off\n')
  const promoted = own.resume()
  const starting = await begin(url)
  await starting.said('"why":"it is starting up"')
  const [pid] = (await readFile(join(own.directory, 'postmaster.pid'), 'utf8')).split('\n')
  await writeFile(join(own.directory, 'promote'), '')
  process.kill(Number(pid), 'SIGUSR1')
  await promoted
  await serves(await starting.listening)
})

test('a signal ends the wait at once', async () => {
  const starting = await begin(`postgresql://127.0.0.1:${await freePort()}/mayfly`)
  await starting.said('the start waits for it')
  expect(await starting.terminate()).toEqual({ code: 0, signal: null })
  expect(starting.logged()).toContain('stopped before the start was complete')
})

test.each([
  ['a wrong password', { password: 'wrong' }, /refuses the password in the database URL/],
  ['a missing database', { pathname: '/missing' }, /does not exist. Create it/],
])('ends at once for %s', async (_what, change, message) => {
  const url = Object.assign(new URL(database.url), change)
  const starting = await begin(url.href)
  expect(await starting.ended).toEqual({ code: 2, signal: null })
  expect(starting.logged()).toMatch(message)
  expect(starting.logged()).not.toContain('waits for it')
})

test('ends at once for a schema of a newer Mayfly', async () => {
  const { url } = await database.createDatabase()
  const client = new pg.Client(url)
  await client.connect()
  await client.query(
    'CREATE TABLE mayfly_schema (version bigint PRIMARY KEY, applied_at timestamptz DEFAULT now())',
  )
  await client.query('INSERT INTO mayfly_schema (version) VALUES (999)')
  await client.end()
  const starting = await begin(url)
  expect(await starting.ended).toEqual({ code: 2, signal: null })
  expect(starting.logged()).toContain('run a newer Mayfly')
})

test('a database that goes away is logged once, and its return', async () => {
  const own = await startOwnPostgres()
  ends.push(() => own.stop())
  const { url } = await own.createDatabase()
  const server = await (await begin(url)).listening
  const before = server.logged().split('\n').length
  await own.halt()
  for (let n = 0; n < 100; n += 1) {
    const reply = await server.call(undefined, 'POST', '/v1/admin/agents', { name: `agent-${n}` })
    expect(reply.status).toBe(503)
  }
  await own.resume()
  await poll('it is ready', async () => (await server.call(undefined, 'GET', '/readyz')).status === 200)
  await poll('it says so', () => server.logged().includes('the database can be read again'))
  // One for each connection that was lost and each job, whatever is asked meanwhile.
  const lines = server.logged().split('\n').slice(before)
  expect(lines.filter((line) => line.includes('"msg":"the database cannot be reached"')).length).toBeLessThan(
    4,
  )
  expect(lines.length, lines.join('\n')).toBeLessThan(50)
})
