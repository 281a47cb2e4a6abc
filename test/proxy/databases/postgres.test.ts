import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { NOBODY } from '../../support/listener-as.ts'
import { liveOf, PLACEHOLDER, type ProxiedDatabase } from '../../support/proxied-database.ts'
import { openPostgresWorld, type PostgresWorld } from '../../support/proxied-postgres.ts'
import { run } from '../../support/run-program.ts'

let world: PostgresWorld
let proxied: ProxiedDatabase

beforeAll(async () => {
  world = await openPostgresWorld()
  proxied = await world.open()
})
afterAll(async () => {
  await proxied?.[Symbol.asyncDispose]()
  await world?.close()
})

const bySocket = (more: pg.ClientConfig = {}) => {
  const client = new pg.Client({
    host: proxied.host,
    port: proxied.port,
    user: 'whoever',
    database: 'app',
    ...more,
  })
  client.on('error', () => undefined)
  return client
}

async function using<T>(client: pg.Client, work: (client: pg.Client) => Promise<T>): Promise<T> {
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

const psql = (sql: string, env: Record<string, string> = {}) =>
  run(['psql', '-XAtq', '-c', sql], { PATH: String(process.env['PATH']), ...proxied.variables, ...env })

describe('who a client is', () => {
  test('psql has all it needs in its environment, and is the issued role', async () => {
    const { stdout, stderr, code } = await psql('SELECT current_user, current_database(), inet_server_port()')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.trim()).toBe(`${world.account.username}|app|${world.server.port}`)
  })

  test('a client of the port shows the placeholder', async () => {
    const { rows } = await using(
      new pg.Client({ connectionString: String(proxied.fields['url']) }),
      (client) => client.query('SELECT current_user AS name'),
    )
    expect(rows).toEqual([{ name: world.account.username }])
    const { stdout } = await psql('SELECT 1', { PGHOST: '127.0.0.1', PGPORT: `${proxied.tcpPort}` })
    expect(stdout.trim()).toBe('1')
  })

  test('the user that a client names is not asked for', async () => {
    const { rows } = await using(bySocket({ user: 'postgres' }), (client) =>
      client.query('SELECT current_user AS name'),
    )
    expect(rows).toEqual([{ name: world.account.username }])
  })

  test.each(['', 'wrong', PLACEHOLDER.slice(0, -1), `${PLACEHOLDER}x`])(
    'the password %j is refused at the port, with what to do next',
    async (password) => {
      const line = proxied.nextLine('refused')
      const wrong = new pg.Client({
        host: '127.0.0.1',
        port: proxied.tcpPort,
        user: 'a',
        password: () => password,
      })
      await expect(wrong.connect()).rejects.toMatchObject({
        code: '28P01',
        message: expect.stringContaining('not the placeholder of this run'),
        hint: expect.stringContaining('that this run was given'),
      })
      expect(await line).toMatchObject({
        decision: 'refused',
        reason: 'wrong_placeholder',
        credentialId: null,
      })
    },
  )

  test.runIf(process.getuid?.() === 0)('another user gets nothing from the port', async () => {
    const program = `require('node:net').connect(${proxied.tcpPort}, '127.0.0.1')
      .on('error', (error) => console.log(error.code)).on('close', () => console.log('closed')).write('\\0\\0\\0\\x08')`
    const child = spawn(process.execPath, ['-e', program], { uid: NOBODY, gid: NOBODY, cwd: '/' })
    const said: string[] = []
    child.stdout.on('data', (bytes) => said.push(String(bytes)))
    await once(child, 'close')
    expect(said.join('')).toMatch(/ECONNRESET|closed/)
    expect(proxied.warnings.join()).toContain('another user')
    const socket = spawn('psql', ['-c', 'SELECT 1'], {
      uid: NOBODY,
      gid: NOBODY,
      cwd: '/',
      env: { ...process.env, ...proxied.variables },
    })
    const [code] = (await once(socket, 'close')) as [number]
    expect(code).toBe(2)
  })
})

describe('what a client may ask for', () => {
  test('its settings reach the server', async () => {
    const client = bySocket({
      application_name: 'orders',
      options: '-c statement_timeout=1234 -c search_path=pg_catalog',
    })
    const { rows } = await using(client, (one) =>
      one.query(
        `SELECT current_setting('application_name') AS name, current_setting('statement_timeout') AS timeout`,
      ),
    )
    expect(rows).toEqual([{ name: 'orders', timeout: '1234ms' }])
  })

  test('another database is asked for as it is, and only where the use permits it', async () => {
    const all = await using(bySocket({ database: 'other' }), (client) =>
      client.query('SELECT current_database() AS name'),
    )
    expect(all.rows).toEqual([{ name: 'other' }])
    await using(bySocket({ database: world.account.username }), async (client) => {
      expect((await client.query('SELECT current_database() AS name')).rows).toEqual([{ name: 'app' }])
    })
    await using(await limited(), async (client) => {
      expect((await client.query('SELECT current_database() AS name')).rows).toEqual([{ name: 'app' }])
    })
  })

  const limited = async (database = 'app') => {
    const one = await world.open({ databases: ['app'] })
    opened.push(one)
    return new pg.Client({ host: one.host, port: one.port, user: 'a', database })
  }
  const opened: ProxiedDatabase[] = []
  afterAll(() => Promise.all(opened.map((one) => one[Symbol.asyncDispose]())))

  test('a database that the use does not name is refused', async () => {
    await expect((await limited('other')).connect()).rejects.toMatchObject({
      code: '42501',
      hint: expect.stringContaining('It permits: app.'),
    })
  })

  test('a database that does not exist is the error of the server', async () => {
    await expect(bySocket({ database: 'nowhere' }).connect()).rejects.toMatchObject({ code: '3D000' })
  })

  test.each(['true', 'database', '1', 'on'])('replication=%s is refused', async (replication) => {
    const { stderr, code } = await run(
      ['psql', `dbname=app replication=${replication}`, '-c', 'IDENTIFY_SYSTEM'],
      {
        ...proxied.variables,
        PATH: String(process.env['PATH']),
      },
    )
    expect([code, stderr]).toEqual([2, expect.stringContaining('no connections for replication')])
  })
})

describe('what goes through', () => {
  test('prepared statements, cursors and errors in the middle of a session', async () => {
    await using(bySocket(), async (client) => {
      for (let n = 0; n < 100; n += 1) {
        const { rows } = await client.query({ name: 'add', text: 'SELECT $1::int + 1 AS sum', values: [n] })
        expect(rows[0]).toEqual({ sum: n + 1 })
      }
      await expect(client.query('SELECT 1/0')).rejects.toMatchObject({ code: '22012' })
      await client.query('BEGIN; DECLARE c CURSOR FOR SELECT generate_series(1, 1000)')
      expect((await client.query('FETCH 500 FROM c')).rows).toHaveLength(500)
      await client.query('COMMIT')
    })
  })

  test('a big result, and as many queries at once as a client likes', async () => {
    await using(bySocket(), async (client) => {
      const { rows } = await client.query(`SELECT repeat('x', 1000) AS text FROM generate_series(1, 50000)`)
      expect(rows).toHaveLength(50_000)
      const all = await Promise.all(
        Array.from({ length: 500 }, (_, n) => client.query('SELECT $1::int AS n', [n])),
      )
      expect(all.map(({ rows: [row] }) => row.n)).toEqual(Array.from({ length: 500 }, (_, n) => n))
    })
  })

  test('COPY of 100 MB in and out is the same bytes, and held up by a slow reader', async () => {
    const piece = `${'0123456789'.repeat(102)}abc\n`
    const count = 100_000
    const env = { PATH: String(process.env['PATH']), ...proxied.variables }
    await psql('CREATE TABLE big (line text)')
    const [sent, received] = [createHash('sha256'), createHash('sha256')]
    const upload = spawn('psql', ['-Xq', '-c', 'COPY big FROM STDIN'], {
      env,
      stdio: ['pipe', 'inherit', 'inherit'],
    })
    const ended = once(upload, 'close')
    const lines = function* () {
      for (let n = 0; n < count / 100; n += 1) {
        const text = piece.repeat(100)
        sent.update(text)
        yield text
      }
    }
    await pipeline(Readable.from(lines()), upload.stdin)
    expect(await ended).toEqual([0, null])
    const before = process.memoryUsage().rss
    const download = spawn('psql', ['-Xq', '-c', 'COPY big TO STDOUT'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const finished = once(download, 'close')
    let bytes = 0
    for await (const chunk of download.stdout) {
      received.update(chunk)
      bytes += chunk.length
    }
    expect(await finished).toEqual([0, null])
    expect(bytes).toBe(piece.length * count)
    expect(received.digest('hex')).toBe(sent.digest('hex'))
    expect(process.memoryUsage().rss - before).toBeLessThan(80_000_000)
    await psql('DROP TABLE big')
  })

  test('notifications, of which a client knows its own', async () => {
    await using(bySocket(), async (client) => {
      const heard = once(client, 'notification')
      await client.query('LISTEN news')
      await psql(`NOTIFY news, 'from another session'`)
      expect((await heard)[0]).toMatchObject({ channel: 'news', payload: 'from another session' })
      const own = once(client, 'notification')
      await client.query(`NOTIFY news, 'mine'`)
      expect((await own)[0].processId).toBe((client as unknown as { processID: number }).processID)
    })
  })
})

describe('a request to cancel', () => {
  const running = async (marker: string) => {
    const { rows } = await world.root.query(
      'SELECT pid FROM pg_stat_activity WHERE query LIKE $1 AND pid <> pg_backend_pid()',
      [`%${marker}%`],
    )
    return rows.length
  }

  test('ends the query of psql at Ctrl-C', async () => {
    const env = { PATH: String(process.env['PATH']), ...proxied.variables }
    const child = spawn('psql', ['-XAt'], { env, stdio: 'pipe' })
    const err: string[] = []
    child.stderr.on('data', (bytes) => err.push(String(bytes)))
    child.stdin.write(`SELECT pg_sleep(600) /* one */;\n`)
    await vi.waitFor(async () => expect(await running('/* one */')).toBe(1), 20_000)
    child.kill('SIGINT')
    await once(child, 'close')
    expect(err.join('')).toContain('canceling statement due to user request')
    await vi.waitFor(async () => expect(await running('/* one */')).toBe(0), 20_000)
  })

  test('with a key that is not of a session of this proxy does nothing', async () => {
    const client = bySocket()
    await client.connect()
    const query = client.query(`SELECT pg_sleep(600) /* two */`)
    query.catch(() => undefined)
    await vi.waitFor(async () => expect(await running('/* two */')).toBe(1), 20_000)
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    await cancelWith(processID, secretKey ^ 1)
    // The key of the server itself is not the one that the child was given.
    const { rows } = await world.root.query('SELECT pid FROM pg_stat_activity WHERE pid = $1', [processID])
    expect(rows).toHaveLength(1)
    expect(await running('/* two */')).toBe(1)
    await cancelWith(processID, secretKey)
    await expect(query).rejects.toMatchObject({ code: '57014' })
    await client.end()
    // The session is over: its key is worth nothing.
    await cancelWith(processID, secretKey)
  })

  async function cancelWith(pid: number, key: number): Promise<void> {
    const packet = Buffer.alloc(16)
    packet.writeInt32BE(16)
    packet.writeInt32BE((1234 << 16) | 5678, 4)
    packet.writeInt32BE(pid, 8)
    packet.writeInt32BE(key, 12)
    const socket = connect(`${proxied.host}/.s.PGSQL.${proxied.port}`)
    socket.write(packet)
    socket.resume()
    await once(socket, 'close')
  }
})

describe('the credential', () => {
  test('that has ended, or is not there, is an error that says what to do', async () => {
    await using(bySocket(), async (before) => {
      proxied.give({ state: 'ended', why: 'it was revoked.' })
      await expect(bySocket().connect()).rejects.toMatchObject({
        code: '28000',
        message: expect.stringContaining('has ended: it was revoked.'),
        hint: expect.stringContaining('Begin a new run'),
      })
      proxied.give({ state: 'unsure', why: 'Mayfly does not answer.' })
      await expect(bySocket().connect()).rejects.toMatchObject({
        code: '57P03',
        hint: expect.stringContaining('Try again'),
      })
      expect((await before.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    })
    proxied.give(liveOf(world.account))
  })

  test('leaves one line for a session', async () => {
    const line = proxied.nextLine('injected')
    await using(bySocket(), (client) => client.query('SELECT 1'))
    const recorded = await line
    expect(recorded).toMatchObject({
      ...{
        protocol: 'postgres',
        method: null,
        authority: `127.0.0.1:${world.server.port}`,
        path: null,
        status: null,
      },
      ...{ decision: 'injected', reason: null, backend: 'orders', credentialId: 'cred_1' },
      ...{ placeholder: 'orders.password', redacted: 0 },
    })
    expect(recorded.bytesSent).toBeGreaterThan(50)
    expect(recorded.bytesReceived).toBeGreaterThan(200)
  })
})
