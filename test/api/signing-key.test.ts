import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ argv: { signingDomain: 'agents.example' } })
})
afterAll(() => app.close())

describe('GET /v1/signing-key', () => {
  test('gives the key pair, name and e-mail address of the agent', async () => {
    const agent = await app.newAgent({ name: 'signer' })
    const { status, body } = await agent.client.get('/v1/signing-key')
    expect(status).toBe(200)
    expect(body).toEqual({
      key_id: agent.signing_key_id,
      public_key: expect.stringMatching(/^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n/),
      private_key: expect.stringMatching(/^-----BEGIN PGP PRIVATE KEY BLOCK-----\r?\n/),
      email: 'signer@agents.example',
      name: 'signer',
    })
    expect(agent.signing_email).toBe(body.email)
  })

  test('adds the git settings with format=git, and accepts no other format', async () => {
    const agent = await app.newAgent()
    const { body } = await agent.client.get('/v1/signing-key?format=git')
    expect(body.git_config).toMatchObject({
      'user.email': body.email,
      'user.name': body.name,
      'user.signingkey': body.key_id,
      'commit.gpgsign': 'true',
    })
    const reply = await agent.client.get('/v1/signing-key?format=json')
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('gives each agent the same key every time, and records each reading', async () => {
    const [one, other] = [await app.newAgent(), await app.newAgent()]
    const first = (await one.client.get('/v1/signing-key')).body
    expect((await one.client.get('/v1/signing-key')).body).toEqual(first)
    const second = (await other.client.get('/v1/signing-key')).body
    expect(second.key_id).not.toBe(first.key_id)
    expect(second.private_key).not.toBe(first.private_key)
    const { body } = await app.admin('GET', `/v1/admin/audit?agent=${one.id}&action=signing_key.read`)
    expect(body).toHaveLength(2)
    expect(JSON.stringify(body)).not.toContain('PRIVATE')
  })

  test('lists the public keys of all agents for the administrator as a bare array', async () => {
    const agent = await app.newAgent({ name: 'listed' })
    const own = (await agent.client.get('/v1/signing-key')).body
    const { status, body, text } = await app.admin('GET', '/v1/admin/keys?limit=1000')
    expect(status).toBe(200)
    expect(body.find((key: { agent_id: string }) => key.agent_id === agent.id)).toEqual({
      key_id: own.key_id,
      agent_id: agent.id,
      name: 'listed',
      email: 'listed@agents.example',
      public_key: own.public_key,
      created_at: expect.stringMatching(/Z$/),
    })
    expect(text).not.toContain('PRIVATE')
  })
})
