import { once } from 'node:events'
import type { Connection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { halfLogin } from '../../../test/support/mariadb-login.ts'
import { type MysqlBench, openMysqlBench } from '../../../test/support/mysql-kind.ts'
import type { Backend, Handle, Issued } from '../kind.ts'

let bench: MysqlBench
let backend: Backend
beforeAll(async () => {
  bench = await openMysqlBench()
  backend = await bench.open()
})
afterAll(() => bench?.close())

const issue = (...scopes: string[]) => backend.issue(newRequest(scopes), never())
const revoke = (handle: Handle | undefined) => backend.revoke?.(handle ?? {}, never())
const nameOf = ({ fields }: Issued) => String(fields?.['username'])
const login = ({ fields }: Issued) =>
  bench.login({ user: String(fields?.['username']), password: String(fields?.['password']) })
const isThere = async (name: unknown) =>
  (await bench.sql(`SELECT 1 FROM mysql.user WHERE User = '${name}'`)).length === 1
const ended = (client: Connection) => {
  client.on('error', () => undefined)
  return new Promise((resolve) => client.on('end', resolve))
}

describe('what a credential may do', () => {
  it('is what its scopes say, and nothing else', async () => {
    const reader = await login(await issue('shop:read'))
    await reader.query('SELECT * FROM shop.orders')
    await expect(reader.query('INSERT INTO shop.orders VALUES (1)')).rejects.toThrow('denied')
    await reader.end()
    const writer = await login(await issue('shop.orders:write', 'shop.invoices:read'))
    await writer.query('INSERT INTO shop.orders VALUES (7)')
    await writer.query('SELECT * FROM shop.invoices')
    for (const beyond of [
      'DELETE FROM shop.invoices',
      'DROP TABLE shop.orders',
      'SELECT User FROM mysql.user',
    ]) {
      await expect(writer.query(beyond)).rejects.toThrow('denied')
    }
    await writer.end()
    const nobody = await login(await issue())
    await expect(nobody.query('SELECT * FROM shop.orders')).rejects.toThrow('denied')
    await nobody.end()
  })

  it('never follows a wildcard in the name of a database', async () => {
    for (const statement of ['CREATE DATABASE a_b', 'CREATE DATABASE axb', 'CREATE TABLE axb.t (id int)']) {
      await bench.sql(statement)
    }
    await bench.sql("GRANT SELECT, SHOW VIEW ON `a\\_b`.* TO mayfly@'%' WITH GRANT OPTION")
    const other = await bench.open({ databases: ['a_b'], grant: 'read-only' })
    expect(await other.check(never())).toEqual([])
    const client = await login(await other.issue(newRequest(['a_b']), never()))
    await client.query('USE a_b')
    await expect(client.query('SELECT * FROM axb.t')).rejects.toThrow('denied')
    await client.end()
  })

  it('leaves nothing behind when a table does not exist', async () => {
    const request = newRequest(['shop:read', 'shop.none:read'])
    const refused = { fault: 'unsupported', message: 'A scope names a table that does not exist.' }
    await expect(backend.issue(request, never())).rejects.toMatchObject(refused)
    expect(await isThere(backend.recover?.(request.credentialId)?.['username'])).toBe(false)
  })

  it('leaves revocation to undo an issue that it cannot undo itself', async () => {
    await bench.sql("CREATE USER half@'%' IDENTIFIED BY 'half'")
    const other = await bench.open({ username: 'half', password: 'half' })
    await expect(other.issue(newRequest(['shop']), never())).rejects.toMatchObject({ fault: 'denied' })
    // It may insert accounts, but drop none.
    await bench.sql("GRANT INSERT ON mysql.* TO half@'%'")
    const request = newRequest(['shop'])
    await expect(other.issue(request, never())).rejects.toMatchObject({ fault: 'unavailable' })
    const handle = backend.recover?.(request.credentialId)
    expect(await isThere(handle?.['username'])).toBe(true)
    await revoke(handle)
    expect(await isThere(handle?.['username'])).toBe(false)
  })
})

describe('the end of a credential', () => {
  it('ends open sessions, in a transaction and in a long statement', async () => {
    const issued = await issue('shop')
    const [idle, busy] = [await login(issued), await login(issued)]
    await idle.query('BEGIN')
    await idle.query('INSERT INTO shop.orders VALUES (4711)')
    const slept = busy.query('SELECT SLEEP(600)').catch((error: Error) => error)
    const ends = [ended(idle), ended(busy)]
    await revoke(issued.handle)
    await Promise.all([...ends, slept])
    expect(await bench.sql('SELECT * FROM shop.orders WHERE id = 4711')).toEqual([])
    await expect(login(issued)).rejects.toThrow('Access denied')
  })

  it('ends a session that is just logging in', async () => {
    const issued = await issue('shop')
    const socket = await halfLogin(bench.port, nameOf(issued))
    const closed = once(socket, 'close')
    await revoke(issued.handle)
    await closed
  })

  it('waits for an issue that the server has not finished, although nobody else does', async () => {
    const root = await bench.login({ user: 'root' })
    await root.query('FLUSH TABLES WITH READ LOCK')
    const abort = new AbortController()
    const request = newRequest(['shop'])
    const issuing = backend.issue(request, abort.signal).catch((error: unknown) => error)
    const blocked = async () => {
      const sql =
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE USER = 'mayfly' AND INFO LIKE 'CREATE USER%'"
      expect((await root.query(sql))[0]).toHaveLength(1)
    }
    await vi.waitFor(blocked, 60_000)
    abort.abort()
    expect(await issuing).toMatchObject({ fault: 'timeout' })
    const handle = backend.recover?.(request.credentialId)
    const revoking = revoke(handle)
    await root.query('UNLOCK TABLES')
    await revoking
    await root.end()
    expect(await isThere(handle?.['username'])).toBe(false)
  })

  it('is not held up by another holder who takes its lock, nor by one who takes all connections', async () => {
    await revoke((await issue()).handle)
    const [first, second] = [await issue('shop'), await issue('shop')]
    const blocker = await login(second)
    await blocker.query(`SELECT GET_LOCK('${nameOf(first)}', 0)`)
    const blockerEnded = ended(blocker)
    await revoke(first.handle)
    await blockerEnded
    expect(await isThere(nameOf(first))).toBe(false)
    await bench.sql('SET GLOBAL max_connections = 10')
    const clients: Connection[] = []
    const takeAll = async () => {
      for (;;) clients.push(await login(second))
    }
    await expect(takeAll()).rejects.toThrow('Too many connections')
    const ends = clients.map(ended)
    const fresh = await bench.open()
    await fresh.revoke?.(second.handle ?? {}, never())
    await Promise.all(ends)
    await bench.sql('SET GLOBAL max_connections = 100')
  })

  it('never drops an account of another name', async () => {
    for (const username of ['root', 'mf_', "mf_x' OR ''='", `mf_${'z'.repeat(26)}`, 7, null]) {
      await expect(revoke({ username })).rejects.toMatchObject({ fault: 'misconfigured' })
    }
  })
})

describe('the preflight', () => {
  it.each([
    ['CREATE USER', "REVOKE CREATE USER ON *.* FROM mayfly@'%'", "GRANT CREATE USER ON *.* TO mayfly@'%'"],
    ['PROCESS', "REVOKE PROCESS ON *.* FROM mayfly@'%'", "GRANT PROCESS ON *.* TO mayfly@'%'"],
    [
      'CONNECTION ADMIN',
      "REVOKE CONNECTION ADMIN ON *.* FROM mayfly@'%'",
      "GRANT CONNECTION ADMIN ON *.* TO mayfly@'%'",
    ],
    ['DELETE ON `shop`.*', "REVOKE DELETE ON shop.* FROM mayfly@'%'", "GRANT DELETE ON shop.* TO mayfly@'%'"],
    [
      'SELECT ON performance_schema.threads',
      "REVOKE SELECT ON performance_schema.threads FROM mayfly@'%'",
      "GRANT SELECT ON performance_schema.threads TO mayfly@'%'",
    ],
    [
      'SELECT (User) ON mysql.user',
      "REVOKE SELECT (User) ON mysql.user FROM mayfly@'%'",
      "GRANT SELECT (User) ON mysql.user TO mayfly@'%'",
    ],
  ])('names %s when it is missing', async (name, take, give) => {
    await bench.sql(take)
    const other = await bench.open()
    await expect(other.check(never())).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining(name),
    })
    await bench.sql(give)
    expect(await (await bench.open()).check(never())).toEqual([])
  })

  it('names a database that is not there, a refused login, and a superuser', async () => {
    await bench.sql("GRANT SELECT, SHOW VIEW ON `later`.* TO mayfly@'%' WITH GRANT OPTION")
    const absent = await bench.open({ databases: ['later'], grant: 'read-only' })
    await expect(absent.check(never())).rejects.toThrow('The database "later" does not exist.')
    const wrong = await bench.open({ password: 'wrong' })
    await expect(wrong.check(never())).rejects.toMatchObject({
      fault: 'denied',
      message: 'MySQL refused the login.',
    })
    await bench.sql("CREATE USER power@'%' IDENTIFIED BY 'power'")
    await bench.sql("GRANT ALL ON *.* TO power@'%' WITH GRANT OPTION")
    const power = await bench.open({ username: 'power', password: 'power' })
    expect(await power.check(never())).toEqual([expect.stringContaining('SUPER')])
  })

  it('says why a credential cannot be ended when only that is missing', async () => {
    const issued = await issue('shop')
    const client = await login(issued)
    await bench.sql("REVOKE CONNECTION ADMIN ON *.* FROM mayfly@'%'")
    const other = await bench.open()
    const revoking = other.revoke?.(issued.handle ?? {}, never())
    await expect(revoking).rejects.toMatchObject({
      fault: 'denied',
      message: expect.stringContaining('CONNECTION ADMIN'),
    })
    await bench.sql("GRANT CONNECTION ADMIN ON *.* TO mayfly@'%'")
    const end = ended(client)
    await revoke(issued.handle)
    await end
  })
})

describe('TLS', () => {
  const check = async (overrides: object) => (await bench.open(overrides)).check(never())

  it('trusts a certificate of the configured authority, for a name and for an address', async () => {
    await check({ host: 'localhost', tls: 'verify-full', ca: bench.ca })
    await check({ host: '127.0.0.1', tls: 'verify-full', ca: bench.ca })
    await check({ tls: 'require' })
  })

  it('refuses an authority that is not configured, and another name', async () => {
    const refused = { fault: 'misconfigured', message: 'MySQL has a certificate that is not trusted.' }
    await expect(check({ host: 'localhost', tls: 'verify-full' })).rejects.toMatchObject(refused)
    const other = { host: '127.0.0.2', ca: bench.ca }
    await expect(check({ ...other, tls: 'verify-full' })).rejects.toMatchObject(refused)
    await bench.open({ host: '127.0.0.2', tls: 'require' }).then((backend) => backend.check(never()))
  })
})

describe('bad days', () => {
  it('goes on after a restart of the server, in the middle of everything', async () => {
    const issued = await issue('shop')
    await bench.halt()
    await expect(revoke(issued.handle)).rejects.toMatchObject({ fault: 'unavailable' })
    await expect(issue('shop')).rejects.toMatchObject({ fault: 'unavailable' })
    await bench.resume()
    await revoke(issued.handle)
    expect(await isThere(nameOf(issued))).toBe(false)
    await revoke((await issue('shop')).handle)
  })

  it('writes no password into the log of the server', async () => {
    await bench.sql("SET GLOBAL log_output = 'TABLE'")
    await bench.sql('SET GLOBAL general_log = ON')
    const issued = await issue('shop')
    const next = (await backend.rotation?.propose(never())) ?? {}
    await backend.rotation?.adopt(next, never())
    await bench.sql('SET GLOBAL general_log = OFF')
    await bench.sql("SET PASSWORD FOR mayfly@'%' = PASSWORD('change-me')")
    const lines = await bench.sql('SELECT argument FROM mysql.general_log')
    const log = lines.map(({ argument }) => String(argument)).join('\n')
    expect(log).toContain('SET PASSWORD')
    expect(log).toContain(`CREATE USER '${nameOf(issued)}'`)
    for (const secret of [next['password'], issued.fields?.['password']]) expect(log).not.toContain(secret)
    await revoke(issued.handle)
  })

  it('replaces its own password, again after a crash, and also once it is in use', async () => {
    const { rotation } = backend
    const next = (await rotation?.propose(never())) ?? {}
    await rotation?.adopt(next, never())
    const old = await bench.open()
    await expect(old.check(never())).rejects.toThrow('refused the login')
    const renewed = await bench.open(next)
    await renewed.rotation?.adopt(next, never())
    expect(await renewed.check(never())).toEqual([])
    await renewed.rotation?.adopt({ password: 'change-me-change-me-change' }, never())
    await bench.sql("SET PASSWORD FOR mayfly@'%' = PASSWORD('change-me')")
  })
})
