import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { DIALECTS } from '../support/store.ts'

interface Entry {
  action: string
  agent_id: string
  agent_name: string
  credential_id: string | null
}

describe.each(DIALECTS)('the audit by actor on %s', (dialect) => {
  let app: TestApp
  let bob: NewAgent
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    bob = await app.newAgent({ name: 'bob', scopes: ['orders'] })
  })
  afterAll(() => app.close())

  const entries = async (client: { get: NewAgent['client']['get'] }, query: string): Promise<Entry[]> =>
    (await client.get(`/api/v1/audit${query}`)).body.entries
  const local = () => app.local

  test('finds what an administrator, an agent, the local host and the system did', async () => {
    const boss = await app.newAgent({ name: 'boss', scopes: ['orders', 'admin:agents', 'admin:tokens'] })
    const own = (await boss.client.post('/v1/credentials/orders')).body
    await boss.client.post('/v1/admin/agents', { name: 'made', scopes: ['orders'] })
    const theirs = (await bob.client.post('/v1/credentials/orders')).body
    await boss.client.delete(`/v1/admin/tokens/${theirs.id}`)
    await boss.client.delete('/v1/admin/agents/made')
    const did = async (query: string) =>
      (await entries(local(), query)).map((entry) => [entry.action, entry.credential_id ?? entry.agent_name])
    const done = [
      ['agent.deleted', 'made'],
      ['credential.revoked', theirs.id],
      ['agent.created', 'made'],
      ['credential.issued', own.id],
    ]
    expect(await did('?actor=BOSS')).toEqual(done)
    expect(await did(`?actor=${boss.id}`)).toEqual(done)
    expect(await did('?actor=boss&agent=boss')).toEqual(done.slice(3))
    expect(await did('?actor=boss&agent=bob&backend=orders')).toEqual(done.slice(1, 2))
    expect(await did('?actor=boss&action=agent.created')).toEqual(done.slice(2, 3))
    expect(await did(`?actor=boss&credential=${theirs.id}`)).toEqual(done.slice(1, 2))
    expect(await did('?actor=bob&agent=boss')).toEqual([])
    expect(await did('?actor=nobody')).toEqual([])
    const first = (await local().get('/api/v1/audit?actor=boss&limit=3')).body
    expect(first.entries).toHaveLength(3)
    expect(await did(`?actor=boss&limit=3&cursor=${first.next_cursor}`)).toEqual(done.slice(3))
    expect(await did('?actor=local&action=agent.created&agent=boss')).toEqual([['agent.created', 'boss']])
    expect(await did('?actor=system&agent=boss')).toEqual([])
    expect((await local().get('/v1/admin/audit?actor=boss')).body).toHaveLength(done.length)
    expect(await entries(boss.client, '?actor=boss')).toHaveLength(1)
    // Bob may see which id did something to him, but not its name.
    expect((await entries(bob.client, `?actor=${boss.id}`)).map((one) => one.credential_id)).toEqual([
      theirs.id,
    ])
    expect(await entries(bob.client, '?actor=boss')).toEqual([])
    expect(new Set((await entries(bob.client, '?actor=bob')).map((one) => one.agent_id))).toEqual(
      new Set([bob.id]),
    )
  })
})
