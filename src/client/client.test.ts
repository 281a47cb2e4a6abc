import { generateKeyPairSync } from 'node:crypto'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../../test/support/app.ts'
import { startOAuthApp } from '../../test/support/oauth-app.ts'
import { scripted, thrown } from '../../test/support/scripted-server.ts'
import { type AccessToken, type Auth, createClient } from './client.ts'

let app: TestApp
let agent: NewAgent
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  await app.newBackend({ name: 'demo', max_ttl: '1h' })
  agent = await app.newAgent({ scopes: ['demo:*'] })
})
afterAll(() => app.close())

const bearer = (token: string): Auth => ({ kind: 'bearer', token })
const asAgent = () => createClient({ server: app.url, auth: bearer(agent.token) })
const asAdmin = () => createClient({ server: app.url, auth: { kind: 'none' } })

describe('an agent', () => {
  test('issues, reads, lists and revokes', async () => {
    const client = asAgent()
    const issued = await client.issue({ backend: 'demo', ttl: '5m' })
    expect(issued).toMatchObject({ backend: 'demo', ttl: '5m', scopes: ['*'] })
    expect(issued.token).toMatch(/^ey/)
    expect(await client.credential(issued.id)).toMatchObject({ id: issued.id, status: 'active' })
    const held: string[] = []
    for await (const one of client.active()) held.push(one.id)
    expect(held).toContain(issued.id)
    expect(await client.revoke(issued.id)).toMatchObject({ id: issued.id, revoked: true })
    expect(await client.credential(issued.id)).toMatchObject({ status: 'revoked' })
    expect((await client.backends()).map(({ id }) => id)).toEqual(['demo'])
    expect(await client.backend('demo')).toMatchObject({ type: 'jwt' })
    expect(await client.status()).toMatchObject({ id: agent.id, name: agent.name })
    const actions: string[] = []
    for await (const entry of client.audit({ credential: issued.id })) actions.push(entry.action)
    expect(actions).toEqual(['credential.revoked', 'credential.issued'])
  })

  test('reads its signing key, and the private half only when asked', async () => {
    const client = asAgent()
    const open = await client.signingKey()
    expect(open.public_key).toMatch(/BEGIN PGP PUBLIC KEY/)
    expect(open).not.toHaveProperty('private_key')
    expect((await client.signingKey({ privateKey: true })).private_key).toMatch(/BEGIN PGP PRIVATE KEY/)
  })

  test.each(['ckr_secret\nmore', 'ckr_secret more', 'ckr_secret\u2019', ''])(
    'neither sends nor shows a malformed token: %j',
    (token) => {
      let error: unknown
      try {
        createClient({ server: app.url, auth: bearer(token) })
      } catch (thrown) {
        error = thrown
      }
      expect(error).toMatchObject({ name: 'MayflyError', code: 'unauthorized', status: 0 })
      expect(inspect(error)).not.toContain('secret')
    },
  )

  test('accepts a token with a trailing line break', async () => {
    const client = createClient({ server: app.url, auth: bearer(`${agent.token}\n`) })
    expect(await client.status()).toMatchObject({ id: agent.id })
  })

  test('asks for scopes, and ends itself', async () => {
    const other = await app.newAgent({ scopes: [] })
    const client = createClient({ server: app.url, auth: bearer(other.token) })
    const asked = await client.requestScopes({ scopes: ['demo:read'], reason: 'to see' })
    expect(asked).toMatchObject({ status: 'pending', scopes: ['demo:read'], reason: 'to see' })
    await client.deleteSelf()
    expect(await thrown(client.status())).toMatchObject({
      name: 'MayflyError',
      status: 401,
      code: 'unauthorized',
    })
  })

  test('health, readiness and discovery need no login', async () => {
    const client = createClient({ server: `${app.url}/`, auth: { kind: 'none' } })
    expect(client.server).toBe(app.url)
    expect((await client.health()).status).toBe('ok')
    expect((await client.ready()).status).toBe('ready')
    expect((await client.discovery()).issuer).toBe(app.url)
  })
})

describe('an administrator', () => {
  test('agents: create, list by pages, show, delete', async () => {
    const { admin } = asAdmin()
    const made = await admin.agents.create({ name: 'listed', scopes: ['demo:x'] })
    expect(made.token).toMatch(/^ckr_/)
    const names: string[] = []
    for await (const one of admin.agents.list({ limit: 1 })) names.push(one.name)
    expect(names).toEqual(expect.arrayContaining([agent.name, 'listed']))
    expect(new Set(names).size).toBe(names.length)
    expect((await admin.agents.show('listed')).id).toBe(made.id)
    await admin.agents.delete('listed')
    expect(await thrown(admin.agents.show('listed'))).toMatchObject({ code: 'agent_not_found', status: 404 })
  })

  test('backends: create, change, list, delete; kinds', async () => {
    const { admin } = asAdmin()
    await admin.backends.create({ type: 'jwt', name: 'more', config: { audience: 'a' } }, { check: false })
    expect(await admin.backends.update('more', { description: 'new' })).toMatchObject({ description: 'new' })
    expect((await admin.backends.show('more')).type).toBe('jwt')
    const kinds: string[] = []
    for await (const kind of admin.kinds()) kinds.push(kind.type)
    expect(kinds).toEqual(expect.arrayContaining(['jwt', 'postgres']))
    await admin.backends.delete('more', { force: true })
    const names: string[] = []
    for await (const one of admin.backends.list()) names.push(one.name)
    expect(names).not.toContain('more')
  })

  test('tokens, audit, pending, policies, plugins, keys', async () => {
    const client = asAdmin()
    const { admin } = client
    const issued = await asAgent().issue({ backend: 'demo' })
    const seen: string[] = []
    for await (const one of admin.tokens.list({ status: 'active' }, { limit: 2 })) seen.push(one.id)
    expect(seen).toContain(issued.id)
    await admin.tokens.revoke(issued.id)
    for await (const entry of admin.audit({ credential: issued.id }, { limit: 1 }))
      expect(entry.outcome).toBe('ok')
    const asker = await app.newAgent({ scopes: [] })
    const asked = await createClient({ server: app.url, auth: bearer(asker.token) }).requestScopes({
      scopes: ['demo:read'],
    })
    const waiting: string[] = []
    for await (const one of admin.pending.list()) waiting.push(one.id)
    expect(waiting).toEqual([asked.id])
    expect(await admin.pending.reject(asked.id, { reason: 'no' })).toMatchObject({ status: 'rejected' })
    expect(await thrown(admin.pending.approve(asked.id))).toMatchObject({ code: 'conflict', status: 409 })
    for await (const policy of admin.policies()) expect(policy).toBeUndefined()
    expect((await admin.plugins.reloadAll()).loaded).toBeGreaterThan(0)
    expect((await admin.plugins.reload('jwt')).reloaded).toBe('jwt')
    const plugins: string[] = []
    for await (const one of admin.plugins.list()) plugins.push(one.name)
    expect(plugins).toContain('jwt')
    expect((await admin.keys.rotate({ grace: '1h' })).previous_valid_until).not.toBeNull()
    const keys: string[] = []
    for await (const one of admin.keys.list()) keys.push(one.agent_id)
    expect(keys).toContain(agent.id)
  })

  test('names the scope that the agent lacks', async () => {
    expect(await thrown(asAgent().admin.agents.show('x'))).toMatchObject({
      code: 'insufficient_scope',
      status: 403,
      scope: 'admin:agents:read',
    })
  })
})

describe('logging in', () => {
  const secretOf = (one: NewAgent): Auth => ({
    kind: 'client_secret',
    clientId: one.oidc.client_id,
    clientSecret: one.oidc.client_secret,
  })
  const logins = async () =>
    ((await app.admin('GET', '/v1/admin/audit?action=token.issued&limit=1000')).body as unknown[]).length

  test('once for many calls at once', async () => {
    const before = await logins()
    const client = createClient({ server: app.url, auth: secretOf(agent) })
    await Promise.all([client.status(), client.backends(), client.issue({ backend: 'demo' })])
    expect(await logins()).toBe(before + 1)
  })

  test('logs in again half a minute before the end', async () => {
    let now = Date.now()
    const client = createClient({ server: app.url, auth: secretOf(agent), now: () => now })
    await client.status()
    const before = await logins()
    now += 3_600_000 - 31_000
    await client.status()
    expect(await logins()).toBe(before)
    now += 2_000
    await client.status()
    expect(await logins()).toBe(before + 1)
  })

  test('logs in again if the token was revoked', async () => {
    const client = createClient({ server: app.url, auth: secretOf(agent) })
    await client.status()
    await app.admin('POST', '/v1/admin/keys/rotate', {})
    expect((await client.status()).id).toBe(agent.id)
  })

  test('shared through the cache; one that is refused is thrown away', async () => {
    let kept: AccessToken | undefined
    const tokens = {
      load: async () => kept,
      save: async (token: AccessToken | undefined) => {
        kept = token
      },
    }
    const open = () => createClient({ server: app.url, auth: secretOf(agent), tokens })
    await open().status()
    const first = kept
    const before = await logins()
    await open().status()
    expect(await logins()).toBe(before)
    await app.admin('POST', '/v1/admin/keys/rotate', {})
    await open().status()
    expect(kept?.token).not.toBe(first?.token)
    expect(await logins()).toBe(before + 1)
  })

  const keyed = (): Auth => {
    const privateJwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) as never
    return { kind: 'private_key_jwt', clientId: 'client', privateJwk }
  }
  test.each([
    ['with a secret', () => secretOf(agent)],
    ['with a key, whose issuer is asked for first', keyed],
  ])('%s is waited for no longer than the call may take', async (_, authOf) => {
    const hungUp = Promise.withResolvers<void>()
    const silent = await scripted(({ socket }) => void socket.on('close', () => hungUp.resolve()))
    const client = createClient({ server: silent.url, auth: authOf() })
    const [one, two] = [new AbortController(), new AbortController()]
    const call = thrown(client.revoke('cred_1', { signal: one.signal }))
    const other = thrown(client.status({ signal: two.signal }))
    await expect.poll(() => silent.seen.length).toBe(1)
    one.abort(new Error('enough'))
    expect(await Promise.race([call, other])).toMatchObject({ message: 'enough' })
    two.abort(new Error('late'))
    expect(await other).toMatchObject({ message: 'late' })
    // Nobody waits for it any more: it must not keep the process.
    await hungUp.promise
    expect(silent.seen).toHaveLength(1)
    await silent.close()
  })

  test('with a wrong secret it is invalid_client', async () => {
    const auth: Auth = {
      kind: 'client_secret',
      clientId: agent.oidc.client_id,
      clientSecret: `cks_${'0'.repeat(64)}`,
    }
    const client = createClient({ server: app.url, auth })
    expect(await thrown(client.status())).toMatchObject({ code: 'invalid_client', status: 401 })
  })

  test('tokens of other audience or scopes are asked for by themselves', async () => {
    const client = createClient({ server: app.url, auth: secretOf(agent) })
    const answer = await client.token({ scopes: ['openid', 'demo:read'] })
    expect(answer).toMatchObject({ token_type: 'Bearer' })
    expect(answer.id_token).toMatch(/^ey/)
    expect(await thrown(client.token({ audience: 'https://elsewhere' }))).toMatchObject({
      code: 'invalid_target',
    })
    expect(await thrown(client.token({ scopes: ['other:x'] }))).toMatchObject({ code: 'invalid_scope' })
    expect(await thrown(asAgent().token())).toMatchObject({ code: 'invalid_client', status: 0 })
  })

  test.each(['Ed25519', 'P-256'] as const)('by an enrolled key: %s', async (curve) => {
    const pair =
      curve === 'Ed25519'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const oauth = await startOAuthApp()
    try {
      await oauth.listen()
      const publicJwk = pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>
      const made = await oauth.createAgent({ name: 'keyed', scopes: ['demo:*'], publicJwk })
      const privateJwk = pair.privateKey.export({ format: 'jwk' }) as never
      const auth: Auth = { kind: 'private_key_jwt', clientId: made.agent.clientId, privateJwk }
      const client = createClient({ server: oauth.issuer, auth })
      expect((await client.status()).name).toBe('keyed')
      const elsewhere = createClient({ server: oauth.issuer, auth: { ...auth, issuer: 'https://elsewhere' } })
      expect(await thrown(elsewhere.status())).toMatchObject({ code: 'invalid_client' })
    } finally {
      await oauth.close()
    }
  })
})
