import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { StoreError } from '../../src/store/errors.ts'
import { eventually, type NewAgent, type Reply, startApp, type TestApp } from '../support/app.ts'
import { openUpstreamDatabase, type UpstreamDatabase } from '../support/upstream-database.ts'

interface Issued {
  id: string
  expires_at: string
  token: string
  fields: { username: string; password: string; host: string; port: number; database: string; url: string }
}

let app: TestApp
let agent: NewAgent
let upstream: UpstreamDatabase
let root: pg.Client

beforeAll(async () => {
  upstream = await openUpstreamDatabase()
  root = upstream.root
  await root.query("CREATE TABLE fruit (name text); INSERT INTO fruit VALUES ('plum')")
  app = await startApp({ jobs: true })
  const reply = await app.admin('POST', '/v1/admin/backends', {
    type: 'postgres',
    name: 'db',
    config: upstream.config(),
  })
  expect([reply.status, reply.text]).toEqual([200, expect.anything()])
  agent = await app.newAgent({ scopes: ['db'] })
})
afterAll(async () => {
  await app.close()
  await upstream.close()
})

async function issue(): Promise<Issued> {
  const reply = await agent.client.post('/v1/credentials/db', { ttl: '5m' })
  expect(reply.status).toBe(200)
  return reply.body
}

async function login({ fields }: Issued): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: fields.url })
  client.on('error', () => undefined)
  await client.connect()
  return client
}

const roleExists = async ({ fields }: Issued) =>
  (await root.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [fields.username])).rowCount === 1

const statusOf = async (id: string) => (await agent.client.get(`/api/v1/credentials/${id}`)).body

describe('a role of PostgreSQL', () => {
  test('logs in with what the reply says, which comes as text and as parts', async () => {
    const issued = await issue()
    expect(JSON.parse(issued.token)).toEqual(issued.fields)
    expect(issued.fields.username).toBe(`mf_${issued.id.slice('cred_'.length)}`)
    const client = await login(issued)
    expect((await client.query('SELECT name FROM fruit')).rows).toEqual([{ name: 'plum' }])
    await expect(client.query('DELETE FROM fruit')).rejects.toThrow('permission denied')
    await client.end()
  })

  test('revoked, it is refused, and its open session has ended', async () => {
    const issued = await issue()
    const client = await login(issued)
    const ended = new Promise((resolve) => client.once('end', resolve))
    const reply = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
    expect(reply.body).toMatchObject({ revoked: true, upstream: 'revoked' })
    await ended
    await expect(login(issued)).rejects.toThrow()
    expect(await roleExists(issued)).toBe(false)
    expect(await statusOf(issued.id)).toMatchObject({ status: 'revoked', revoked: true })
  })

  test('revoked by the administrator while it is being issued, it never comes to be', async () => {
    const { commit } = app.core.store
    const asked: { id: string; revoked: Reply }[] = []
    app.core.store.commit = async (change, options) => {
      const entry = change.find((step) => step.op === 'insert' && step.table === 'audit')
      if (entry?.row.action !== 'credential.issued') return commit(change, options)
      // The role is there, and its commit is about to be made.
      app.core.store.commit = commit
      const id = entry.row.credential_id ?? ''
      asked.push({ id, revoked: await app.admin('DELETE', `/api/v1/credentials/${id}`) })
      return commit(change, options)
    }
    const headers = { 'idempotency-key': 'revoked-while-issuing' }
    const refused = await agent.client.post('/v1/credentials/db', { ttl: '5m' }, headers)
    expect([refused.status, refused.body.error?.code]).toEqual([409, 'conflict'])
    const [{ id, revoked } = { id: '', revoked: refused }] = asked
    expect(revoked.body).toMatchObject({ id, revoked: true })
    expect(Date.parse(revoked.body.revoked_at)).toBeLessThanOrEqual(Date.now())
    const role = { fields: { username: `mf_${id.slice('cred_'.length)}` } } as Issued
    await eventually(async () => expect(await roleExists(role)).toBe(false))
    expect((await app.admin('GET', `/api/v1/credentials/${id}`)).body).toMatchObject({ status: 'revoked' })
    const { body } = await app.admin('GET', `/v1/admin/audit?credential=${id}&action=credential.revoked`)
    expect(body).toMatchObject([{ actor: 'local' }])
    // The caller got nothing and may ask again.
    expect((await agent.client.post('/v1/credentials/db', { ttl: '5m' }, headers)).status).toBe(200)
  })

  test('revoked while the upstream refuses it, both are on record', async () => {
    const { byName } = await app.core.backends.at(await app.core.store.generation())
    const upstream = await byName.get('db')?.connect()
    if (upstream === undefined) throw new Error('no backend')
    const ids: string[] = []
    const issues = vi.spyOn(upstream, 'issue').mockImplementation(async ({ credentialId }) => {
      ids.push(credentialId)
      await app.admin('DELETE', `/api/v1/credentials/${credentialId}`)
      throw new Error('refused')
    })
    expect((await agent.client.post('/v1/credentials/db', { ttl: '5m' })).status).toBe(502)
    issues.mockRestore()
    const { body } = await app.admin('GET', `/v1/admin/audit?credential=${ids[0]}`)
    const actions = body.map((entry: { action: string }) => entry.action)
    expect(actions).toEqual(expect.arrayContaining(['credential.issue_failed', 'credential.revoked']))
  })

  test('expired, it is gone from the server by the work of the sweeper', async () => {
    const issued = await issue()
    const client = await login(issued)
    const ended = new Promise((resolve) => client.once('end', resolve))
    expect(await roleExists(issued)).toBe(true)
    app.advancePast(issued.expires_at)
    await eventually(async () => expect(await roleExists(issued)).toBe(false))
    await ended
    expect(await statusOf(issued.id)).toMatchObject({ status: 'expired', revoked: false })
    await eventually(async () => {
      const { body } = await app.admin('GET', `/v1/admin/audit?credential=${issued.id}`)
      expect(body.map((entry: { action: string }) => entry.action)).toEqual([
        'credential.settled',
        'credential.expired',
        'credential.issued',
        'credential.requested',
      ])
    })
  })

  test('drops a role made while the store was failing at once, before the store is back', async () => {
    const { commit, credentials } = app.core.store
    const { find } = credentials
    const away = async () => {
      throw new StoreError('away')
    }
    const ids: string[] = []
    app.core.store.commit = async (change, options) => {
      const entry = change.find((step) => step.op === 'insert' && step.table === 'audit')
      if (entry?.row.action !== 'credential.issued') return commit(change, options)
      ids.push(entry.row.credential_id ?? '')
      app.core.store.commit = away
      credentials.find = away
      return away()
    }
    try {
      const reply = await agent.client.post('/v1/credentials/db', { ttl: '5m' })
      expect([reply.status, reply.body.error?.code]).toEqual([503, 'audit_unavailable'])
      expect(await roleExists({ fields: { username: `mf_${ids[0]?.slice(5)}` } } as Issued)).toBe(false)
    } finally {
      app.core.store.commit = commit
      credentials.find = find
    }
  })

  test('a node that was paused between the intent and the upstream call creates nothing', async () => {
    const { commit } = app.core.store
    const ids: string[] = []
    app.core.store.commit = async (change, options) => {
      const outcome = await commit(change, options)
      const entry = change.find((step) => step.op === 'insert' && step.table === 'audit')
      if (entry?.row.action !== 'credential.requested') return outcome
      app.core.store.commit = commit
      ids.push(entry.row.credential_id ?? '')
      // As long as an interrupted issue is left alone, and one that sweeps meanwhile.
      app.advance(60_000)
      await app.sweep()
      expect((await app.core.store.credentials.find(ids[0] ?? ''))?.state).toBe('revoked')
      return outcome
    }
    const { byName } = await app.core.backends.at(await app.core.store.generation())
    const upstream = await byName.get('db')?.connect()
    if (upstream === undefined) throw new Error('no backend')
    const issues = vi.spyOn(upstream, 'issue')
    const reply = await agent.client.post('/v1/credentials/db', { ttl: '5m' })
    expect([reply.status, reply.body.error?.code]).toEqual([504, 'backend_timeout'])
    expect(issues).not.toHaveBeenCalled()
    issues.mockRestore()
  })

  test.each(['is made', 'fails'])(
    'a role that comes into being after it was looked for in vain is ended, when the issue %s',
    async (how) => {
      const { byName } = await app.core.backends.at(await app.core.store.generation())
      const upstream = await byName.get('db')?.connect()
      if (upstream?.revoke === undefined) throw new Error('no backend')
      const ids: string[] = []
      const state = async () => (await app.core.store.credentials.find(ids[0] ?? ''))?.state
      const { issue: really } = upstream
      const revokes = vi.spyOn(upstream, 'revoke')
      const issues = vi.spyOn(upstream, 'issue').mockImplementation(async (request, signal) => {
        ids.push(request.credentialId)
        // The node stands still inside the call, while another one sweeps.
        app.advance(60_000)
        await app.sweep()
        expect(await state()).toBe('revoked')
        revokes.mockRejectedValue(new Error('away'))
        const issued = await really.call(upstream, request, signal)
        if (how === 'fails') throw new Error('the answer is lost')
        return issued
      })
      const reply = await agent.client.post('/v1/credentials/db', { ttl: '5m' })
      expect(reply.status).toBe(how === 'fails' ? 502 : 409)
      issues.mockRestore()
      const role = { fields: { username: `mf_${(ids[0] ?? '').slice('cred_'.length)}` } } as Issued
      expect([await roleExists(role), await state()]).toEqual([true, 'revoking'])
      revokes.mockRestore()
      app.advance(60_000)
      await app.sweep()
      expect([await roleExists(role), await state()]).toEqual([false, 'revoked'])
      const { body } = await app.admin(
        'GET',
        `/v1/admin/audit?credential=${ids[0]}&action=credential.issue_failed`,
      )
      expect(body).toMatchObject([{ details: { code: how === 'fails' ? 'backend_error' : 'conflict' } }])
    },
  )

  test('goes with its agent, and with its backend', async () => {
    const other = await app.newAgent({ scopes: ['db'] })
    const first = (await other.client.post('/v1/credentials/db')).body as Issued
    await app.admin('DELETE', `/v1/admin/agents/${other.name}`)
    await eventually(async () => expect(await roleExists(first)).toBe(false))
    await expect(login(first)).rejects.toThrow()
    const second = await issue()
    const client = await login(second)
    const ended = new Promise((resolve) => client.once('end', resolve))
    expect((await app.admin('DELETE', '/v1/admin/backends/db?force=true')).status).toBe(204)
    await ended
    await eventually(async () => expect(await roleExists(second)).toBe(false))
    const left = await root.query(
      "SELECT rolname FROM pg_roles WHERE rolname LIKE 'mf\\_%' AND rolname = ANY($1)",
      [[first.fields.username, second.fields.username]],
    )
    expect(left.rows).toEqual([])
  })

  test('left no password in the log or the audit', async () => {
    const { text } = await app.admin('GET', '/v1/admin/audit?limit=1000')
    expect(text).not.toContain('password')
    expect(app.logged()).not.toMatch(/SCRAM|"password":"(?!\[)/)
  })
})
