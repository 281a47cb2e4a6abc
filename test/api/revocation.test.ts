import { request } from 'node:http'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ jobs: true })
  await app.newBackend({ name: 'orders' })
})
afterAll(() => app.close())

const actionsOf = async (id: string) =>
  (await app.admin('GET', `/v1/admin/audit?credential=${id}`)).body.map(
    (entry: { action: string }) => entry.action,
  )

describe('the life of a credential', () => {
  test('expires with time: in every answer at once, and in the audit once, by the sweeper', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    // `exp` of a JWT counts whole seconds, so that less than one cannot be promised.
    const { body } = await agent.client.post('/api/v1/credentials', { backend: 'orders', ttl: '1s300ms' })
    expect(body.id).toBeDefined()
    await eventually(async () => {
      const read = await agent.client.get(`/api/v1/credentials/${body.id}`)
      expect([read.body.status, read.body.revoked]).toEqual(['expired', false])
    })
    expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(Date.now())
    expect((await agent.client.get('/v1/active')).body).toEqual([])
    await eventually(async () =>
      expect(await actionsOf(body.id)).toEqual(['credential.expired', 'credential.issued']),
    )
  })

  test('stays revoked when revoked before its expiry, and is left alone by the sweeper', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const { id } = (await agent.client.post('/v1/credentials/orders', { ttl: '1s300ms' })).body
    await agent.client.delete(`/v1/active/${id}`)
    const other = (await agent.client.post('/v1/credentials/orders', { ttl: '1s300ms' })).body.id
    await eventually(async () => expect(await actionsOf(other)).toContain('credential.expired'))
    expect((await agent.client.get(`/api/v1/credentials/${id}`)).body.status).toBe('revoked')
    expect(await actionsOf(id)).toEqual(['credential.revoked', 'credential.issued'])
  })

  test('is revoked once by many simultaneous requests, all answered alike', async () => {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const { id } = (await agent.client.post('/v1/credentials/orders')).body
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => agent.client.delete(`/api/v1/credentials/${id}`)),
    )
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(await actionsOf(id)).toEqual(['credential.revoked', 'credential.issued'])
  })

  test('ends with its agent when the agent expires', async () => {
    const agent = await app.newAgent({ scopes: ['orders'], expires_in: '1500ms' })
    const { id } = (await agent.client.post('/v1/credentials/orders', { ttl: '1h' })).body
    await eventually(async () => {
      expect((await app.admin('GET', `/v1/admin/agents/${agent.name}`)).status).toBe(404)
      const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.id}`)
      expect(body.map((entry: { action: string }) => entry.action)).toContain('agent.expired')
    })
    expect((await agent.client.get('/v1/status')).status).toBe(401)
    expect((await app.admin('GET', `/api/v1/credentials/${id}`)).body.status).not.toBe('active')
  })

  /** Issues over a connection that `hangUp` breaks, and waits for the end of the credential. */
  async function issueAndHangUp(prepare: (hangUp: () => void) => void): Promise<void> {
    const agent = await app.newAgent({ scopes: ['orders'] })
    const { hostname, port } = new URL(app.url)
    await new Promise<void>((resolve) => {
      const call = request({
        hostname,
        port,
        method: 'POST',
        path: '/v1/credentials/orders',
        headers: { authorization: `Bearer ${agent.token}` },
        agent: false,
      })
      prepare(() => call.destroy())
      call.on('error', () => resolve())
      call.on('close', () => resolve())
      call.end()
    })
    await eventually(async () => {
      const { body } = await app.admin('GET', `/v1/admin/audit?agent=${agent.id}&action=credential.revoked`)
      expect(body[0]?.details).toEqual({ reason: 'undelivered' })
    })
    expect((await agent.client.get('/v1/active')).body).toEqual([])
  }

  /** Called when the next credential is committed, before the commit resolves. */
  function whenCommitted(then: () => unknown): () => void {
    const real = app.core.store.commit
    app.core.store.commit = async (change, options) => {
      const outcome = await real(change, options)
      if (change.flat().some((step) => step.op === 'insert' && step.table === 'credentials')) await then()
      return outcome
    }
    return () => {
      app.core.store.commit = real
    }
  }

  test('is revoked when the caller hung up during the commit', async () => {
    let restore: () => void = () => undefined
    try {
      await issueAndHangUp((hangUp) => {
        restore = whenCommitted(() => {
          hangUp()
          return new Promise((resolve) => setTimeout(resolve, 50))
        })
      })
    } finally {
      restore()
    }
  })

  test('is revoked when the connection broke before the reply was written', async () => {
    let socket: Socket | undefined
    const onConnection = (one: Socket) => {
      socket = one
    }
    app.app.http.server.server.on('connection', onConnection)
    let restore: () => void = () => undefined
    try {
      await issueAndHangUp(() => {
        // Before the event-loop iteration ends, until which replies are held.
        restore = whenCommitted(() => {
          setImmediate(() => socket?.destroy())
        })
      })
    } finally {
      restore()
      app.app.http.server.server.off('connection', onConnection)
    }
  })
})
