import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MINUTE_MS } from '../../src/domain/limits.ts'
import { type Reply, startApp, type TestApp } from '../support/app.ts'
import { beginDevice, type Command, commandByCode } from '../support/command.ts'
import { newPerson, type Person } from '../support/person.ts'

let app: TestApp
let alice: Person
let agents = 0
beforeAll(async () => {
  app = await startApp()
  alice = await newPerson(app)
})
afterAll(() => app.close())

const code = ({ body }: Reply) => body?.error?.code
const newest = async (action: string) =>
  (await app.local.get(`/v1/admin/audit?action=${action}&limit=1`)).body[0]
const agentNamed = async (scopes: string[] = []) => {
  agents += 1
  return (await app.newAgent({ name: `of-commands-${agents}`, scopes })).name
}
/** Ten logins begin in a minute at one address. */
async function command(person: Person): Promise<Command> {
  app.advance(MINUTE_MS / 10)
  return commandByCode(app, person)
}

describe('what counts as confirmed', () => {
  test('for fifteen minutes what cannot be undone; then the command logs in again', async () => {
    const one = await command(alice)
    expect((await one.client.delete(`/v1/admin/agents/${await agentNamed()}`)).status).toBe(204)
    expect(await newest('agent.deleted')).toMatchObject({
      actor: `operator:${alice.email}`,
      auth_method: 'operator_token',
    })
    const backend = await app.newBackend()
    expect((await one.client.delete(`/v1/admin/backends/${backend}`)).status).toBe(204)
    app.advance(15 * MINUTE_MS)
    const name = await agentNamed()
    const refused = await one.client.delete(`/v1/admin/agents/${name}`)
    expect([refused.status, code(refused), refused.body.error.options]).toEqual([
      403,
      'confirmation_required',
      { command: true },
    ])
    expect(code(await one.client.delete(`/v1/admin/agents/${name}`, { 'mayfly-confirmation': 'AAAA' }))).toBe(
      'confirmation_required',
    )
    expect((await one.client.get(`/v1/admin/agents/${name}`)).status).toBe(200)
    const two = await command(alice)
    expect((await two.client.delete(`/v1/admin/agents/${name}`)).status).toBe(204)
    await alice.call('DELETE', `/v1/admin/sessions/${one.id}`)
  })

  test('keys and all credentials of a backend, within it', async () => {
    const one = await command(alice)
    const backend = await app.newBackend()
    expect((await one.client.post('/v1/admin/tokens/revoke', { backend })).status).toBe(200)
    expect((await one.client.post('/v1/admin/keys/rotate', { grace: '1h' })).status).toBe(200)
  })

  test('never what gives an admin scope, or touches operators and passkeys', async () => {
    const one = await command(alice)
    const strong = await agentNamed(['admin:audit:read'])
    const bob = await newPerson(app)
    const [passkey] = (await bob.call('GET', `/v1/admin/operators/${bob.id}/passkeys`)).body
    const [own] = (await alice.call('GET', `/v1/admin/operators/${alice.id}/passkeys`)).body
    const pending = async () => {
      const agent = await app.newAgent({ scopes: ['orders'] })
      return (await agent.client.post('/v1/request', { scopes: ['admin:audit:read'] })).body.id
    }
    const acts: [string, string, unknown?][] = [
      ['POST', '/v1/admin/agents', { name: 'stronger', scopes: ['admin:audit:read'] }],
      ['PATCH', `/v1/admin/agents/${await agentNamed()}`, { add_scopes: ['admin:*'] }],
      ['POST', `/v1/admin/agents/${strong}/rotate`],
      ['POST', `/v1/admin/pending/${await pending()}/approve`],
      ['POST', '/v1/admin/operators', { email: 'weak@example.com', scopes: [] }],
      ['POST', `/v1/admin/operators/${bob.id}/invitation`],
      ['PATCH', `/v1/admin/operators/${bob.id}`, { scopes: [] }],
      ['PATCH', `/v1/admin/operators/${bob.id}`, { name: 'Bobby' }],
      ['DELETE', `/v1/admin/operators/${bob.id}`],
      ['DELETE', `/v1/admin/operators/${bob.id}/passkeys/${passkey.id}`],
      ['DELETE', `/v1/admin/operators/${alice.id}/passkeys/${own.id}`],
    ]
    const ask = (method: string, path: string, body?: unknown) =>
      method === 'POST'
        ? one.client.post(path, body)
        : method === 'PATCH'
          ? one.client.patch(path, body)
          : one.client.delete(path)
    for (const late of [0, 15 * MINUTE_MS]) {
      app.advance(late)
      for (const [method, path, body] of acts) {
        const reply = await ask(method, path, body)
        expect([method, path, reply.status, code(reply)]).toEqual([method, path, 403, 'not_allowed'])
        expect(reply.body.error.message).toContain('admin.sock')
      }
    }
    expect((await app.local.get(`/v1/admin/operators/${bob.id}`)).body.name).not.toBe('Bobby')
  })

  test('and without an admin scope, agents are created, changed and rotated', async () => {
    const one = await command(alice)
    app.advance(15 * MINUTE_MS)
    expect((await one.client.post('/v1/admin/agents', { name: 'plain', scopes: ['x'] })).status).toBe(200)
    expect((await one.client.patch('/v1/admin/agents/plain', { add_scopes: ['y'] })).status).toBe(200)
    expect((await one.client.post('/v1/admin/agents/plain/rotate')).status).toBe(200)
  })
})

test('nobody without a passkey allows anything', async () => {
  app.advance(MINUTE_MS)
  const bob = await newPerson(app, { passkey: false })
  const begun = (await beginDevice(app)).body
  const reply = await bob.call('POST', '/v1/console/commands/allow', { user_code: begun.user_code })
  expect([code(reply), reply.body.error.options]).toEqual(['confirmation_required', {}])
})
