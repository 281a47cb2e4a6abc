import { afterAll, beforeAll, expect, it } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../../../test/support/app.ts'
import type { RevokedCredential } from '../../backends/kind.ts'
import { publishRevoked } from './publish-revoked.ts'

let app: TestApp
let agent: NewAgent

beforeAll(async () => {
  app = await startApp()
  for (const name of ['ssh', 'other'])
    await app.newBackend({ type: 'ssh', name, config: { principals: ['deploy'] } })
  agent = await app.newAgent({ scopes: ['ssh', 'other'] })
})
afterAll(() => app.close())

/** Puts what the kind is given in place of its document. */
async function spy(name: string) {
  const { byName } = await app.core.backends.at(await app.core.store.generation())
  const instance = await byName.get(name)?.connect()
  const given: (readonly RevokedCredential[])[] = []
  Object.assign(instance ?? {}, {
    revocationList: async (revoked: readonly RevokedCredential[]) => {
      given.push(revoked)
      return { contentType: 'text/plain', body: Buffer.from('') }
    },
  })
  return given
}
const issue = async (by: NewAgent, backend: string, ttl = '10m') =>
  String((await by.client.post('/api/v1/credentials', { backend, ttl })).body.id)
/** Past the time for which a list is kept. */
const publish = async () => {
  app.advance(30_000)
  await publishRevoked(app.core, 'ssh')
}

it('lists what was revoked and has not expired, of this backend alone, for whatever reason', async () => {
  const given = await spy('ssh')
  await publish()
  expect(given).toEqual([[]])
  const [living, revoked, short] = [
    await issue(agent, 'ssh'),
    await issue(agent, 'ssh'),
    await issue(agent, 'ssh', '1m'),
  ]
  const foreign = await issue(agent, 'other')
  const leaver = await app.newAgent({ scopes: ['ssh'] })
  const left = await issue(leaver, 'ssh')
  for (const id of [revoked, short, foreign]) await agent.client.delete(`/api/v1/credentials/${id}`)
  await leaver.client.delete('/v1/self')
  await publish()
  expect(
    given
      .at(-1)
      ?.map(({ credentialId }) => credentialId)
      .sort(),
  ).toEqual([revoked, short, left])
  const now = app.core.store.now()
  for (const { endedAt } of given.at(-1) ?? []) expect(Math.abs(now - endedAt)).toBeLessThan(60_000)
  app.advance(60_000)
  await publish()
  expect(
    given
      .at(-1)
      ?.map(({ credentialId }) => credentialId)
      .sort(),
  ).toEqual([revoked, left])
  expect(given.flat().map(({ credentialId }) => credentialId)).not.toContain(living)
})

it('lists those of an agent that has ended while their rows still say that they live', async () => {
  const given = await spy('ssh')
  const id = await issue(agent, 'ssh')
  const endedAt = app.core.store.now()
  const by = { actor: 'local', ipAddress: null, userAgent: null, authMethod: null, requestId: null }
  const note = { agentId: agent.id, reason: 'agent_deleted', endedAt, by } as const
  await app.core.store.commit([app.core.store.agents.beginEnd(note as never)])
  await publish()
  expect(given.at(-1)).toContainEqual({ credentialId: id, endedAt })
  await app.core.store.commit([app.core.store.agents.finishEnd(agent.id)])
})

it('makes one list a second, however many ask', async () => {
  const given = await spy('ssh')
  app.advance(30_000)
  await Promise.all(Array.from({ length: 50 }, () => fetch(`${app.url}/backends/ssh/revoked`)))
  expect(given.length).toBeLessThan(5)
})

it('makes one long list at a time, which all who ask wait for, and serves the last one meanwhile', async () => {
  const { byName } = await app.core.backends.at(await app.core.store.generation())
  const instance = await byName.get('ssh')?.connect()
  let made = 0
  let letGo = Promise.withResolvers<void>()
  Object.assign(instance ?? {}, {
    revocationList: async () => {
      made += 1
      const body = Buffer.from(String(made))
      await letGo.promise
      // So long that what is made is kept for more than the shortest time.
      const until = performance.now() + 100
      while (performance.now() < until);
      return { contentType: 'text/plain', body }
    },
  })
  app.advance(600_000)
  const ask = async () => String((await publishRevoked(app.core, 'ssh')).body)
  const first = [ask(), ask()]
  letGo.resolve()
  expect(await Promise.all(first)).toEqual(['1', '1'])
  letGo = Promise.withResolvers()
  // In steps that are shorter than the time for which it is kept, so that it has just become old when the next one is begun.
  const meanwhile = new Set<string>()
  while (made < 2) {
    app.advance(500)
    meanwhile.add(await ask())
  }
  expect([...meanwhile]).toEqual(['1'])
  app.advance(600_000)
  const next = [ask(), ask()]
  letGo.resolve()
  expect(await Promise.all(next)).toEqual(['2', '2'])
  expect(made).toBe(2)
})

it('has none for other kinds, unknown names and names in other letters', async () => {
  await app.newBackend({ name: 'tokens' })
  const config = { host: '127.0.0.1', database: 'app', username: 'mayfly', local: true }
  await app.newBackend({ type: 'postgres', name: 'db', config }, '?check=false')
  for (const name of ['tokens', 'db', 'nobody', 'SSH', '..%2fssh']) {
    const reply = await app.as(undefined).get(`/backends/${name}/revoked`)
    expect([name, reply.status, reply.body.error.code]).toEqual([name, 404, 'not_found'])
  }
})
