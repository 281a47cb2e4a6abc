import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import mysql, { type ConnectionOptions, type RowDataPacket } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { NOBODY } from '../../support/listener-as.ts'
import { listenBetween } from '../../support/listening-relay.ts'
import { type MariadbServer, startMariadb } from '../../support/mariadb-server.ts'
import {
  liveOf,
  openProxied,
  PLACEHOLDER,
  type ProxiedDatabase,
  type ProxiedOptions,
} from '../../support/proxied-database.ts'
import { run } from '../../support/run-program.ts'

let server: MariadbServer
let proxied: ProxiedDatabase
const account = {
  username: 'mf_orders',
  password: `${randomBytes(32).toString('base64url')}-aA1`,
  database: 'app',
}

const open = (use: Partial<ProxiedOptions['use']> = {}, parts: Partial<ProxiedOptions> = {}) =>
  openProxied({ account, ...parts, use: { protocol: 'mysql', port: server.port, ...use } })

beforeAll(async () => {
  server = await startMariadb()
  await server.sql('CREATE DATABASE app')
  await server.sql('CREATE DATABASE other')
  await server.sql(`CREATE USER '${account.username}'@'%' IDENTIFIED BY '${account.password}'`)
  await server.sql(`GRANT ALL ON *.* TO '${account.username}'@'%'`)
  proxied = await open()
})
afterAll(async () => {
  await proxied?.[Symbol.asyncDispose]()
  await server?.stop()
})

const byPort = (more: ConnectionOptions = {}) =>
  mysql.createConnection({ uri: String(proxied.fields['url']), ...more })
const bySocket = (more: ConnectionOptions = {}) =>
  mysql.createConnection({ socketPath: proxied.socket, user: 'whoever', database: 'app', ...more })

async function using<T>(
  opening: Promise<mysql.Connection>,
  work: (one: mysql.Connection) => Promise<T>,
): Promise<T> {
  const one = await opening
  try {
    return await work(one)
  } finally {
    await one.end()
  }
}
const rowsOf = async (one: mysql.Connection, sql: string, values?: unknown[]) =>
  (await one.query<RowDataPacket[]>(sql, values))[0]

const client = (args: string[], env: Record<string, string> = {}, defaults = '--no-defaults') =>
  run(['mariadb', defaults, '-N', ...args], {
    PATH: String(process.env['PATH']),
    ...proxied.variables,
    ...env,
  })

describe('who a client is', () => {
  test('mariadb takes the port from its environment, or the socket', async () => {
    const sql = "SELECT CURRENT_USER(), IFNULL(DATABASE(), '-')"
    const byPort = await client(['-u', 'whoever', 'app', '-e', sql])
    expect([byPort.code, byPort.stderr]).toEqual([0, ''])
    expect(byPort.stdout.trim()).toBe(`${account.username}@%\tapp`)
    const bySocketFile = await client(['-h', 'localhost', '-u', 'whoever', '-e', sql])
    expect([bySocketFile.code, bySocketFile.stderr]).toEqual([0, ''])
    expect(bySocketFile.stdout.trim()).toBe(`${account.username}@%\t-`)
  })

  test('mariadb comes here, too, where its configuration names the socket of the machine, as that of Debian does', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'mayfly-defaults-'))
    try {
      const file = join(directory, 'my.cnf')
      await writeFile(file, `[client-server]\nsocket = ${directory}/mysqld.sock\n`)
      const { code, stdout, stderr } = await client(
        ['-u', 'whoever', '-e', 'SELECT CURRENT_USER()'],
        {},
        `--defaults-file=${file}`,
      )
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout.trim()).toBe(`${account.username}@%`)
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('a client of the port shows the placeholder', async () => {
    expect(await using(byPort(), (one) => rowsOf(one, 'SELECT CURRENT_USER() AS name'))).toEqual([
      { name: `${account.username}@%` },
    ])
  })

  test.each(['', 'wrong', PLACEHOLDER.slice(0, -1)])(
    'the password %j is refused at the port',
    async (password) => {
      const line = proxied.nextLine('refused')
      await expect(
        mysql.createConnection({ host: '127.0.0.1', port: proxied.tcpPort, user: 'a', password }),
      ).rejects.toMatchObject({
        errno: 1045,
        message: expect.stringContaining('not the placeholder of this run'),
      })
      expect(await line).toMatchObject({ decision: 'refused', reason: 'wrong_placeholder' })
    },
  )

  test.runIf(process.getuid?.() === 0)('another user gets nothing from the port', async () => {
    const env = { ...process.env, ...proxied.variables }
    const child = spawn('mariadb', ['-h', '127.0.0.1', '-e', 'SELECT 1'], {
      uid: NOBODY,
      gid: NOBODY,
      cwd: '/',
      env,
    })
    expect((await once(child, 'close'))[0]).toBe(1)
    expect(proxied.warnings.join()).toContain('another user')
  })

  test('a client that has the method of newer servers keeps it', async () => {
    await using relay = await listenBetween(proxied.tcpPort)
    const ask = (...args: string[]) =>
      client(['--default-auth=caching_sha2_password', '-u', 'a', ...args, '-e', 'SELECT 1'])
    const byRelay = ['-h', '127.0.0.1', '-P', `${relay.port}`]
    const { stdout, stderr } = await ask(...byRelay)
    expect([stdout.trim(), stderr]).toEqual(['1', ''])
    expect(relay.heard().toString('latin1')).toContain('\xfecaching_sha2_password\0')
    expect((await ask(...byRelay, '-pwrong')).stderr).toContain('not the placeholder of this run')
    // Also at the socket, with any password or none.
    for (const password of ['-pwrong', '--skip-password'])
      expect((await ask('-h', 'localhost', password)).stdout.trim()).toBe('1')
  })

  test('a client that prefers yet another method is asked for the old one', async () => {
    const { stdout, stderr } = await client([
      ...['-h', '127.0.0.1', '-u', 'a', '--default-auth=client_ed25519', '-e', 'SELECT 1'],
    ])
    expect([stdout.trim(), stderr]).toEqual(['1', ''])
  })

  test('a client that insists on TLS is told where it is', async () => {
    const { stderr, code } = await client([
      '-h',
      '127.0.0.1',
      '-u',
      'a',
      '--ssl',
      '--ssl-verify-server-cert',
      '-e',
      'SELECT 1',
    ])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/SSL|TLS/)])
    await expect(byPort({ ssl: { rejectUnauthorized: false } })).rejects.toThrow(/secure connection|TLS/)
  })

  test('a database that the use does not name is refused', async () => {
    await using(bySocket({ database: 'other' }), async (one) => {
      expect(await rowsOf(one, 'SELECT DATABASE() AS name')).toEqual([{ name: 'other' }])
    })
    await using2(await open({ databases: ['app'] }), async (limited) => {
      await expect(
        mysql.createConnection({ socketPath: limited.socket, user: 'a', database: 'other' }),
      ).rejects.toMatchObject({ errno: 1044, message: expect.stringContaining('It permits: app.') })
    })
    await expect(bySocket({ database: 'nowhere' })).rejects.toMatchObject({ errno: 1049 })
  })
})

async function using2(one: ProxiedDatabase, work: (one: ProxiedDatabase) => Promise<void>): Promise<void> {
  try {
    await work(one)
  } finally {
    await one[Symbol.asyncDispose]()
  }
}

describe('what goes through', () => {
  test('prepared statements, several statements at once, and errors', async () => {
    await using(bySocket({ multipleStatements: true }), async (one) => {
      for (let n = 0; n < 50; n += 1) {
        const [rows] = await one.execute<RowDataPacket[]>('SELECT ? + 1 AS sum', [n])
        expect(Number(rows[0]?.['sum'])).toBe(n + 1)
      }
      const [both] = await one.query('SELECT 1 AS a; SELECT 2 AS b')
      expect(both).toEqual([[{ a: 1 }], [{ b: 2 }]])
      await expect(one.query('SELECT nonsense')).rejects.toMatchObject({ errno: 1054 })
      expect(await rowsOf(one, 'SELECT 3 AS c')).toEqual([{ c: 3 }])
    })
  })

  test('a statement and a value of more than one packet (16 MB), and 100 MB of rows', async () => {
    await server.sql('SET GLOBAL max_allowed_packet = 67108864')
    await using(bySocket(), async (one) => {
      const big = randomBytes(17 * 1_048_576).toString('hex')
      const [row] = await rowsOf(one, 'SELECT MD5(?) AS sum, LENGTH(?) AS length', [big, 'x'])
      expect(row).toEqual({ sum: createHash('md5').update(big).digest('hex'), length: 1 })
      const [value] = await rowsOf(one, `SELECT REPEAT('ab', 12000000) AS text`)
      expect(value?.['text']).toHaveLength(24_000_000)
      expect(await rowsOf(one, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    })
    const { stdout, code } = await run(
      [
        'sh',
        '-c',
        `mariadb --no-defaults -N -u a --quick -e "SELECT REPEAT('x', 1000) FROM app.many" | wc -c`,
      ],
      { PATH: String(process.env['PATH']), ...(await manyRows()) },
    )
    expect([code, stdout.trim()]).toEqual([0, '100100000'])
  })

  async function manyRows(): Promise<Record<string, string>> {
    await using(bySocket(), async (one) => {
      await one.query('CREATE TABLE many (n INT)')
      await one.query('INSERT INTO many SELECT seq FROM seq_1_to_100000')
    })
    return { ...proxied.variables }
  }

  test('the end of a query at Ctrl-C', async () => {
    const env = { PATH: String(process.env['PATH']), ...proxied.variables }
    const child = spawn('mariadb', ['--no-defaults', '-u', 'a'], { env, stdio: 'pipe' })
    const ended = once(child, 'close')
    child.stdin.write('SELECT SLEEP(600) /* one */;\n')
    const running = () =>
      server.sql(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(600)%' AND INFO NOT LIKE '%PROCESSLIST%'",
      )
    await vi.waitFor(async () => expect(await running()).toHaveLength(1), 20_000)
    child.kill('SIGINT')
    await vi.waitFor(async () => expect(await running()).toHaveLength(0), 20_000)
    child.kill()
    await ended
  })

  test('a change of the user is refused in its turn, and the session goes on', async () => {
    await using(bySocket(), async (one) => {
      const slow = one.query('SELECT SLEEP(0.2) AS slow')
      const change = one.changeUser({ user: 'root', password: '' })
      await expect(change).rejects.toMatchObject({
        sqlState: '0A000',
        message: expect.stringContaining('Mayfly'),
      })
      await slow
      await using(bySocket(), (other) => rowsOf(other, 'SELECT 1'))
    })
  })

  test('no files of the child, although it offers them', async () => {
    await using(bySocket(), async (one) => {
      await one.query('CREATE TABLE files (line TEXT)')
      await expect(
        one.query({
          sql: "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE files",
          infileStreamFactory: () => null as never,
        }),
      ).rejects.toMatchObject({ sqlState: expect.stringMatching(/42000|HY000/) })
    })
    const { stderr } = await client([
      '-u',
      'a',
      '--local-infile=1',
      'app',
      '-e',
      "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE files",
    ])
    expect(stderr).toContain('ERROR')
    expect(await server.sql('SELECT COUNT(*) AS n FROM app.files')).toEqual([{ n: 0 }])
  })
})

describe('the login upstream', () => {
  test.each([
    ['verify-full', 'localhost', true],
    ['verify-full', '127.0.0.1', true],
    ['require', '127.0.0.1', false],
  ] as const)('over TLS (%s, %s)', async (tls, host, withCa) => {
    await using2(await open({ tls, host, ...(withCa ? { ca: server.ca } : {}) }), async (secured) => {
      await using(mysql.createConnection({ socketPath: secured.socket, user: 'a' }), async (one) => {
        const [row] = await rowsOf(one, `SHOW STATUS LIKE 'Ssl_version'`)
        expect(row?.['Value']).toMatch(/^TLSv1/)
      })
    })
  })

  test('is not begun where the certificate is of another authority', async () => {
    await using2(await open({ tls: 'verify-full' }), async (secured) => {
      const line = secured.nextLine()
      await expect(mysql.createConnection({ socketPath: secured.socket, user: 'a' })).rejects.toMatchObject({
        message: expect.stringContaining('certificate that is not trusted'),
      })
      expect(await line).toMatchObject({
        decision: 'refused',
        reason: 'upstream_tls',
        credentialId: 'cred_1',
      })
    })
  })

  test('of an account with ed25519', async () => {
    await server.sql("INSTALL SONAME 'auth_ed25519'")
    const password = randomBytes(32).toString('base64url')
    await server.sql(`CREATE USER 'mf_ed' IDENTIFIED VIA ed25519 USING PASSWORD('${password}')`)
    await using2(await open({}, { account: { username: 'mf_ed', password } }), async (one) => {
      const opening = mysql.createConnection({ socketPath: one.socket, user: 'a' })
      expect(await using(opening, (session) => rowsOf(session, 'SELECT CURRENT_USER() AS name'))).toEqual([
        { name: 'mf_ed@%' },
      ])
    })
  })

  test('that the server refuses is its own error', async () => {
    await using2(await open({}, { account: { ...account, password: 'wrong' } }), async (one) => {
      const line = one.nextLine()
      await expect(mysql.createConnection({ socketPath: one.socket, user: 'a' })).rejects.toMatchObject({
        errno: 1045,
      })
      expect(await line).toMatchObject({ decision: 'refused', reason: 'upstream_refused' })
    })
  })
})

describe('the credential', () => {
  test('that has ended, or is not there, is an error that says what to do', async () => {
    proxied.give({ state: 'ended', why: 'it was revoked.' })
    await expect(byPort()).rejects.toMatchObject({
      errno: 1045,
      message: expect.stringContaining('Begin a new run'),
    })
    const { stderr } = await client(['-u', 'a', '-e', 'SELECT 1'])
    expect(stderr).toContain('has ended: it was revoked.')
    proxied.give({ state: 'unsure', why: 'Mayfly does not answer.' })
    await expect(byPort()).rejects.toMatchObject({
      errno: 1158,
      message: expect.stringContaining('Try again'),
    })
    proxied.give(liveOf(account))
  })

  test('leaves one line for a session', async () => {
    const line = proxied.nextLine('injected')
    await using(byPort(), (one) => rowsOf(one, 'SELECT 1'))
    expect(await line).toMatchObject({
      protocol: 'mysql',
      decision: 'injected',
      authority: `127.0.0.1:${server.port}`,
    })
  })
})
