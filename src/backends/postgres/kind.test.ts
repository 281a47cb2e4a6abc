import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Bench, login, openBench, request, signal } from '../../../test/support/postgres-kind.ts'
import { startPostgresProxy } from '../../../test/support/postgres-proxy.ts'
import { drip, flood, startPostgresScript } from '../../../test/support/postgres-script.ts'
import type { Backend, Issued } from '../kind.ts'
import { postgres } from './kind.ts'

let bench: Bench
beforeAll(async () => {
  bench = await openBench()
  await bench.sql(
    'CREATE TABLE orders (id serial PRIMARY KEY, what text); INSERT INTO orders (what) VALUES ($$a$$)',
  )
})
afterAll(() => bench?.close())

const INSERT = "INSERT INTO public.orders (what) VALUES ('b')"

async function may(issued: Issued, text: string, database?: string): Promise<boolean> {
  const client = await login(issued, database)
  try {
    await client.query(text)
    return true
  } catch (error) {
    expect((error as { code: string }).code).toBe('42501')
    return false
  } finally {
    await client.end()
  }
}

async function withIssued(backend: Backend, scopes: string[], look: (issued: Issued) => Promise<void>) {
  const issued = await backend.issue(request(scopes), signal())
  try {
    await look(issued)
  } finally {
    await backend.revoke?.(issued.handle ?? {}, signal())
  }
}

async function rolesLike(name: unknown): Promise<number> {
  return (await bench.sql('SELECT 1 FROM pg_roles WHERE rolname = $1', [name])).length
}

describe('the grants of a credential', () => {
  it('reads and does not write under read-only, with everything it needs to log in', async () => {
    const backend = await bench.open()
    await withIssued(backend, ['*'], async (issued) => {
      expect(Object.keys(issued.fields ?? {})).toEqual([
        'username',
        'password',
        'host',
        'port',
        'database',
        'url',
      ])
      expect(issued.fields?.['username']).toMatch(/^mf_[0-9a-z]{26}$/)
      expect(await may(issued, 'SELECT * FROM public.orders')).toBe(true)
      for (const text of [INSERT, 'UPDATE public.orders SET what = what', 'DELETE FROM public.orders']) {
        expect(await may(issued, text)).toBe(false)
      }
      expect(await may(issued, 'CREATE ROLE other')).toBe(false)
      expect(await may(issued, 'CREATE DATABASE other')).toBe(false)
    })
  })

  it('writes under read-write, unless the scope says read', async () => {
    const backend = await bench.open({ grant: 'read-write' })
    const database = bench.database.name
    for (const scope of ['*', database, `${database}:write`, 'mayfly_test_*:write', `${database}:*`]) {
      await withIssued(backend, [scope], async (issued) => expect(await may(issued, INSERT)).toBe(true))
    }
    for (const scope of [`${database}:read`, '*:read', 'mayfly_test_*:read']) {
      await withIssued(backend, [scope], async (issued) => {
        expect(await may(issued, 'SELECT * FROM public.orders')).toBe(true)
        expect(await may(issued, INSERT)).toBe(false)
      })
    }
  })

  it('grants nothing for no scopes: the credential logs in and sees no table', async () => {
    const backend = await bench.open({ grant: 'read-write' })
    await withIssued(backend, [], async (issued) => {
      expect(await may(issued, 'SELECT 1')).toBe(true)
      expect(await may(issued, 'SELECT * FROM public.orders')).toBe(false)
    })
  })

  it('grants only the databases that the scopes name', async () => {
    const other = await bench.createDatabase()
    await bench.sql('CREATE TABLE things (id int)', [], other.name)
    const backend = await bench.open({ databases: [bench.database.name, other.name] })
    await withIssued(backend, [`${other.name}:read`], async (issued) => {
      expect(issued.fields?.['database']).toBe(other.name)
      expect(await may(issued, 'SELECT * FROM public.things', other.name)).toBe(true)
      expect(await may(issued, 'SELECT * FROM public.orders', bench.database.name)).toBe(false)
    })
  })

  it.each([
    ['a write scope where only reading is granted', (name: string) => `${name}:write`],
    ['a database that is not granted', () => 'postgres'],
    ['a third part', (name: string) => `${name}:read:orders`],
    ['an unknown permission', (name: string) => `${name}:admin`],
    ['SQL in a scope', (name: string) => `${name}"; DROP TABLE orders; --`],
    ['SQL in a permission', (name: string) => `${name}:read'; DROP TABLE orders; --`],
  ])('refuses %s, and creates no role', async (_, scope) => {
    const backend = await bench.open()
    const asked = request([scope(bench.database.name)])
    await expect(backend.issue(asked, signal())).rejects.toMatchObject({ fault: 'unsupported' })
    expect(await rolesLike(backend.recover?.(asked.credentialId)?.['username'])).toBe(0)
    expect(await bench.sql('SELECT count(*)::int AS n FROM orders')).not.toEqual([{ n: 0 }])
  })

  it('works with hostile names of role, database and schema', async () => {
    const username = `o'"; DROP ROLE x; -- \\ é ${Date.now()}`
    const made = await bench.createRole('SUPERUSER', username)
    // Without a semicolon: pg's own URL parser leaves %3B as it is.
    const name = `m'"\\ %s é ${Date.now()}`
    await bench.sql(`CREATE DATABASE ${pg.escapeIdentifier(name)}`)
    try {
      const schema = `s"'; x`
      await bench.sql(`CREATE SCHEMA ${pg.escapeIdentifier(schema)}`, [], name)
      await bench.sql(`CREATE TABLE ${pg.escapeIdentifier(schema)}.t (id int)`, [], name)
      const backend = await bench.open({ ...made, database: name, schemas: [schema, 'public'] })
      await backend.check(signal())
      await withIssued(backend, ['*'], async (issued) => {
        const client = new pg.Client({ connectionString: String(issued.fields?.['url']) })
        await client.connect()
        expect((await client.query(`SELECT * FROM ${pg.escapeIdentifier(schema)}.t`)).rowCount).toBe(0)
        await client.end()
      })
      await backend[Symbol.asyncDispose]()
    } finally {
      await bench.sql(`DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`)
    }
  })

  it('gives the agent its own host and port, escaped in the url', async () => {
    const backend = await bench.open({ connect_host: 'fd12::5', connect_port: 6543 })
    await withIssued(backend, [], async ({ fields }) => {
      expect(fields).toMatchObject({ host: 'fd12::5', port: 6543 })
      expect(new URL(String(fields?.['url'])).host).toBe('[fd12::5]:6543')
    })
  })
})

describe('the secret', () => {
  it('reaches the server as a verifier only, which the server accepts', async () => {
    const proxy = await startPostgresProxy(bench.server)
    const backend = await bench.open({ port: proxy.port, connect_port: bench.server.port })
    await withIssued(backend, ['*'], async (issued) => {
      const password = String(issued.fields?.['password'])
      expect(password).toMatch(/^[A-Za-z0-9_-]{43}$/)
      expect(proxy.sent()).toContain('SCRAM-SHA-256$4096:')
      expect(proxy.sent()).not.toContain(password)
      expect(await may(issued, 'SELECT 1')).toBe(true)
      if (bench.server.asksPassword) {
        const wrong = { ...issued, fields: { ...issued.fields, password: `${password}x` } }
        await expect(login(wrong)).rejects.toMatchObject({ code: '28P01' })
      }
    })
    await backend[Symbol.asyncDispose]()
    await proxy.close()
  })

  it('takes the number of SCRAM iterations from the configuration', async () => {
    const backend = await bench.open({ scram_iterations: 256 })
    await withIssued(backend, ['*'], async (issued) => {
      const [row] = await bench.sql('SELECT rolpassword FROM pg_authid WHERE rolname = $1', [
        issued.fields?.['username'],
      ])
      expect(row?.['rolpassword']).toMatch(/^SCRAM-SHA-256\$256:/)
      expect(await may(issued, 'SELECT * FROM public.orders')).toBe(true)
    })
  })

  it.each([
    ['in clear', 'R\0\0\0\x08\0\0\0\x03'],
    ['as an MD5 hash', 'R\0\0\0\x0c\0\0\0\x05salt'],
  ])('of Mayfly itself is not sent to a server that asks for it %s', async (_, question) => {
    let seen = ''
    const asking = await startPostgresScript((socket) => {
      socket.on('data', (chunk) => {
        seen += chunk.toString('latin1')
      })
      socket.write(question, 'latin1')
    })
    const backend = await bench.open({ port: asking.port, password: 'the real key' })
    await expect(backend.check(signal())).rejects.toMatchObject({
      fault: 'misconfigured',
      message: expect.stringContaining('in clear or as an MD5 hash'),
    })
    expect(seen).not.toMatch(/the real key|md5/)
    asking.close()
  })

  it('never drops a role that is not ours', async () => {
    const backend = await bench.open()
    const body = request([]).credentialId.slice(5)
    for (const username of ['postgres', `cred_${body}`, body, 'mf_', `mf_${body}x`, 5, null]) {
      await expect(backend.revoke?.({ username }, signal())).rejects.toMatchObject({ fault: 'misconfigured' })
    }
    expect(() => backend.recover?.('cred_x"; DROP ROLE y')).toThrow('not well formed')
  })
})

describe('errors of the server', () => {
  it.each([
    ['a missing database', { database: 'mayfly_no_such' }, 'misconfigured'],
    ['a port without a listener', { port: 1 }, 'unavailable'],
    ['a name that has no address', { host: 'mayfly.invalid' }, 'unavailable'],
    ['a loopback address that is not meant', { local: false, tls: 'disable' as const }, 'misconfigured'],
    ['a server without TLS', { tls: 'require' as const }, 'misconfigured'],
    ['a role that does not exist', { username: 'mayfly_nobody' }, 'denied'],
  ])('classifies %s', async (_, overrides, fault) => {
    const backend = await bench.open(overrides)
    const error = await backend.check(signal()).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ name: 'BackendError', fault })
    await expect(backend.issue(request(['*']), signal())).rejects.toMatchObject({ fault })
  })

  it('reports a schema that does not exist at the check, and issues what it can', async () => {
    const backend = await bench.open({ schemas: ['no_such', 'public'] })
    await expect(backend.check(signal())).rejects.toMatchObject({ fault: 'misconfigured' })
    await withIssued(backend, ['*'], async (issued) => {
      expect(await may(issued, 'SELECT * FROM public.orders')).toBe(true)
    })
    expect(bench.logged()).toContain('schema no_such, which does not exist')
  })

  it('reports a failure that only the client library knows', async () => {
    const plain = await bench.open({ tls: 'require' })
    await expect(plain.check(signal())).rejects.toThrow('does not offer TLS; see "tls"')
    const asking = await startPostgresScript((socket) => {
      // AuthenticationSASL with its one mechanism; then AuthenticationSASLContinue.
      socket.write('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0', 'latin1')
      socket.once('data', () => socket.write('R\0\0\0\x09\0\0\0\x0br', 'latin1'))
    })
    const backend = await bench.open({ port: asking.port, password: '' })
    await expect(backend.check(signal())).rejects.toThrow('asks for a password, and there is none')
    asking.close()
  })

  it('recognizes a read-only server', async () => {
    const { name } = await bench.createDatabase()
    await bench.sql(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    const backend = await bench.open({ database: name })
    await expect(backend.check(signal())).rejects.toThrow('PostgreSQL only reads')
    await expect(backend.issue(request([]), signal())).rejects.toMatchObject({ fault: 'unavailable' })
  })

  it.each([
    ['at once', flood],
    ['little by little', drip],
  ])('stops reading an endless reply that comes %s', async (_, answer) => {
    const script = await startPostgresScript(answer)
    const backend = await bench.open({ port: script.port })
    await expect(backend.check(signal())).rejects.toThrow('too long')
    script.close()
  })

  it('is neither read endlessly nor waited for when nothing was asked', async () => {
    const proxy = await startPostgresProxy(bench.server)
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const backend = await bench.open({ port: proxy.port })
      await backend.check(signal())
      expect(vi.getTimerCount()).toBe(0)
      proxy.interrupt(flood)
      await vi.waitFor(() => expect(bench.logged()).toContain('too long'), 60_000)
      await backend.check(signal())
    } finally {
      vi.useRealTimers()
      await proxy.close()
    }
  })

  it('refuses a contradictory configuration', async () => {
    const faults = [
      { grant: 'statements' as const },
      { statements: ['SELECT 1'] },
      { grant: 'statements' as const, statements: ['SELECT {{secret}}'] },
      { ca: 'x' },
    ]
    for (const overrides of faults) {
      await expect(postgres.complete?.(bench.settings(overrides))).rejects.toMatchObject({
        fault: 'misconfigured',
      })
    }
  })
})
