import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newHome, runCli, startWorld, type World } from './support.ts'

let world: World
let admin: Record<string, string>
beforeAll(async () => {
  world = await startWorld()
  admin = { ...world.bareEnv, MAYFLY_SERVER: world.url, MAYFLY_DATA_DIR: world.app.directory }
  const login = { env: { ...world.bareEnv, MAYFLY_SERVER: world.url }, stdin: world.agent.token }
  expect((await runCli(['login', '--profile', 'work', '--token-file', '-'], login)).code).toBe(0)
})
afterAll(() => world.close())

async function offered(words: readonly string[], env: Readonly<Record<string, string>>): Promise<string[]> {
  const ended = await runCli(['__complete', '--', ...words], { env })
  expect([ended.code, ended.stderr]).toEqual([0, ''])
  return ended.stdout.split('\n').filter((line) => line !== '')
}

describe('an agent gets', () => {
  test.each([
    ['the argument of get', ['get', '']],
    ['an option of run', ['run', '--backend', 'de']],
    ['an option with its value in one word', ['revoke', '--backend=']],
  ])('the names of backends for %s', async (_, words) => {
    const [found] = await offered(words, world.env)
    expect(found).toMatch(/^(--backend=)?demo\tjwt$/)
  })

  test.each([
    ['get', ['get', 'demo', '--scope', 'or']],
    ['run', ['run', '--backend', 'demo', '--scope', '']],
    ['an option in one word', ['run', '--backend=demo', '--scope', '']],
  ])('the forms of the scopes of the backend for %s', async (_, words) => {
    const found = await offered(words, world.env)
    // A form with a star would be expanded by the shell.
    expect(found).toEqual([expect.stringMatching(/^orders:read\torders:read: read orders/)])
  })

  test('them also where bash splits a scope, and each with its backend where there are several', async () => {
    for (const rest of [[':', 're'], [':']]) {
      const [found = ''] = await offered(['get', 'demo', '--scope', 'orders', ...rest], world.env)
      expect(found.split('\t')[0]).toBe('read')
    }
    const two = ['run', '--backend', 'demo', '--backend', 'second', '--scope', '']
    await world.app.newBackend({ name: 'second' })
    const words = (await offered(two, world.env)).map((line) => line.split('\t')[0])
    expect(words).toEqual(['demo:orders:read', 'second:orders:read'])
    await world.app.admin('DELETE', '/v1/admin/backends/second')
    expect(await offered(['run', '--scope', ''], world.env)).toEqual([])
    expect(await offered(['get', 'nowhere', '--scope', ''], world.env)).toEqual([])
  })

  test('its credentials, each once', async () => {
    const { body } = await world.agent.client.post('/api/v1/credentials', { backend: 'demo' })
    expect(await offered(['revoke', ''], world.env)).toEqual([`${body.id}\tdemo`])
    expect(await offered(['revoke', 'cred_'], world.env)).toEqual([`${body.id}\tdemo`])
    expect(await offered(['revoke', body.id, ''], world.env)).toEqual([])
  })

  test('its profiles', async () => {
    expect(await offered(['--profile', ''], world.bareEnv)).toEqual([`work\t${world.url}`])
    expect(await offered(['get', '--profile', 'wo'], world.bareEnv)).toEqual([`work\t${world.url}`])
    // With the login of the profile that the line names.
    expect(await offered(['--profile', 'work', 'get', ''], world.bareEnv)).toEqual(['demo\tjwt'])
    expect(await offered(['get', '--profile=work', ''], world.bareEnv)).toEqual(['demo\tjwt'])
  })

  test('nothing without a login, or from a server that is down', async () => {
    const { env: fresh } = await newHome()
    expect(await offered(['get', ''], { ...fresh, MAYFLY_SERVER: world.url })).toEqual([])
    expect(await offered(['get', ''], { ...world.env, MAYFLY_SERVER: 'http://127.0.0.1:9' })).toEqual([])
    expect(await offered(['agent', 'rm', ''], world.env)).toEqual([])
  })
})

describe('an administrator gets', () => {
  test('agents, backends and kinds', async () => {
    expect(await offered(['agent', 'rm', 'ag'], admin)).toContain(`${world.agent.name}\tdemo:*`)
    expect(await offered(['audit', '--agent', ''], admin)).toContain(`${world.agent.name}\tdemo:*`)
    expect(await offered(['backend', 'show', ''], admin)).toEqual(['demo\tjwt'])
    expect(await offered(['backend', 'add', 'post'], admin)).toEqual(['postgres\tPostgreSQL'])
    const forms = await offered(['backend', 'update', 'demo', '--allow-scope', ''], admin)
    expect(forms).toEqual([expect.stringMatching(/^orders:read\t/)])
    expect(await offered(['kind', 'show', 'j'], admin)).toEqual([expect.stringMatching(/^jwt\t/)])
    const { MAYFLY_SERVER: server = '', ...other } = admin
    expect(await offered(['backend', 'show', '--server', server, ''], other)).toEqual(['demo\tjwt'])
  })

  test('what is pending, by name and id', async () => {
    const public_key = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })
    const { body } = await world.app.as(undefined).post('/v1/enroll', { name: 'tab', public_key })
    expect(await offered(['approve', ''], admin)).toEqual([`tab\t${body.id}`, `${body.id}\ttab`])
  })
})

test('a name from a server that a shell would not take as one word is not offered', async () => {
  const hostile = ['$(touch x)', '`x`', 'a b', '-rf', 'a;b', "a'b", '../x', 'a\nb', '']
  const backends = ['good', ...hostile].map((id) => ({
    id,
    type: 'jwt\nevil\t',
    default_ttl: '1h',
    max_ttl: '1h',
    revocation: 'exact',
  }))
  const server = createServer((_, reply) => {
    reply.setHeader('content-type', 'application/json')
    reply.end(JSON.stringify({ backends }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const env = { ...world.env, MAYFLY_SERVER: `http://127.0.0.1:${address.port}` }
  expect(await offered(['get', ''], env)).toEqual(['good\tjwt evil '])
  await new Promise((done) => server.close(done))
})
