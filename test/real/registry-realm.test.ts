import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createDockerRegistry, type DockerRegistry } from '../support/docker-registry.ts'
import { isInstalled } from '../support/run-program.ts'

interface Credential {
  readonly id: string
  readonly expires_at: string
  readonly fields: { readonly username: string; readonly password: string; readonly docker_config: string }
}

let app: TestApp
let server: DockerRegistry
let agent: NewAgent
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  server = await createDockerRegistry()
  const config = { address: `http://${server.host}`, repositories: ['team/app', 'team/web'], local: true }
  for (const name of ['images', 'others'])
    await app.local.post('/v1/admin/backends', { type: 'registry', name, config })
  const { body } = await app.local.get('/v1/admin/backends/images')
  const issuer = `${app.url}/backends/images`
  await server.start({ issuer, certificate: body.config.certificate, realm: `${issuer}/token` })
  agent = await app.newAgent({ scopes: ['images:team/*', 'others'] })
})
afterAll(async () => {
  await server.close()
  await app.close()
})

async function issue(scopes: readonly string[], ttl = '30m', by = agent): Promise<Credential> {
  const reply = await by.client.post('/api/v1/credentials', { backend: 'images', scopes, ttl })
  expect(reply.status).toBe(201)
  return reply.body
}

/** Asks the realm as a program does. */
async function ask(login: string | undefined, asked: readonly string[] = [], backend = 'images') {
  const query = new URLSearchParams({ service: server.host, client_id: 'docker', offline_token: 'true' })
  for (const scope of asked) query.append('scope', scope)
  const headers =
    login === undefined ? {} : { authorization: `Basic ${Buffer.from(login).toString('base64')}` }
  const reply = await fetch(`${app.url}/backends/${backend}/token?${query}`, { headers })
  const body = (await reply.json()) as { token: string; access_token: string; expires_in: number }
  return { status: reply.status, headers: reply.headers, body }
}
const loginOf = ({ fields }: Credential) => `${fields.username}:${fields.password}`
const accessOf = (token: string) => decodeJwt(token)['access']

describe('programs that know a user name and a password', () => {
  const run = (program: string, args: readonly string[]) =>
    new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
      const options = { env: { PATH: process.env['PATH'] ?? '', HOME: server.directory } }
      execFile(program, args, options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
      )
    })
  const image = (repository: string) => `docker://${server.host}/${repository}:latest`
  const inTls = ['--dest-tls-verify=false', '--insecure-policy']
  async function configOf({ id, fields }: Credential): Promise<string> {
    const directory = join(server.directory, id)
    await mkdir(directory)
    await writeFile(join(directory, 'config.json'), fields.docker_config, { mode: 0o600 })
    return join(directory, 'config.json')
  }

  test('push and pull with the configuration of a credential, by its scopes', async () => {
    const [pushing, pulling] = [await issue(['team/app:push']), await issue(['team/app:pull'])]
    const push = async (credential: Credential, to: string) =>
      run('skopeo', ['copy', ...inTls, '--authfile', await configOf(credential), server.image, image(to)])
    expect(await push(pushing, 'team/app')).toMatchObject({ code: 0 })
    expect((await push(await issue(['team/app:push']), 'team/web')).code).not.toBe(0)
    const authfile = await configOf(pulling)
    const pull = () =>
      run('skopeo', ['inspect', '--raw', '--tls-verify=false', '--authfile', authfile, image('team/app')])
    expect(await pull()).toMatchObject({ code: 0, output: expect.stringContaining('sha256:') })
    expect((await push(await issue(['team/app:pull']), 'team/app')).code).not.toBe(0)
    await agent.client.delete(`/api/v1/credentials/${pulling.id}`)
    expect(await pull()).toMatchObject({ code: 1 })
  })

  test('log in and keep the password', async () => {
    const { fields } = await issue(['team/app:pull'])
    const authfile = join(server.directory, 'login.json')
    const login = (password: string) =>
      run('skopeo', [
        ...['login', '--tls-verify=false', '--authfile', authfile],
        ...['-u', fields.username, '-p', password, server.host],
      ])
    expect(await login(fields.password)).toMatchObject({ code: 0 })
    expect((await login('wrong')).code).not.toBe(0)
  })

  test.each(['buildah', 'podman'].filter(isInstalled))('%s logs in', async (program) => {
    const { fields } = await issue(['team/app:pull'])
    const args = ['login', '--tls-verify=false', '-u', fields.username, '-p', fields.password, server.host]
    expect(await run(program, args)).toMatchObject({ code: 0 })
  })
})

describe('the realm of a registry', () => {
  test('gives what the credential permits of what was asked, for five minutes at most', async () => {
    const login = loginOf(await issue(['team/app:push']))
    const { status, headers, body } = await ask(login, [
      'repository:team/app:pull,delete',
      'repository:team/web:pull',
    ])
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      ...{ token: expect.any(String), access_token: body.token, expires_in: 300 },
      issued_at: expect.any(String),
    })
    expect(accessOf(body.token)).toEqual([{ type: 'repository', name: 'team/app', actions: ['pull'] }])
    const { exp = 0, iat = 0 } = decodeJwt(body.token)
    // The registry adds its leeway of a minute.
    expect(exp - iat).toBe(240)
    for (const asked of [
      [],
      ['registry:catalog:*'],
      ['repository:team/web:pull'],
      ['x y', ''],
      ['repository(plugin):team/app:pull'],
    ])
      expect(accessOf((await ask(login, asked)).body.token)).toEqual([])
    const all = await ask(login, [
      'repository:team/app:pull repository:team/app:push',
      'repository:team/app:*',
    ])
    expect(accessOf(all.body.token)).toEqual([
      { type: 'repository', name: 'team/app', actions: ['pull', 'push'] },
    ])
  })

  test('gives none that outlives its credential', async () => {
    const issued = await issue(['team/app:pull'], '90s')
    const { body } = await ask(loginOf(issued), ['repository:team/app:pull'])
    expect(((decodeJwt(body.token).exp ?? 0) + 60) * 1_000).toBeLessThanOrEqual(Date.parse(issued.expires_at))
    expect(body.expires_in).toBeLessThanOrEqual(90)
  })

  test('refuses alike what is unknown, wrong, of another backend, revoked, or of an agent that has ended', async () => {
    const [good, revoked] = [await issue(['team/app:pull']), await issue(['team/app:pull'])]
    await agent.client.delete(`/api/v1/credentials/${revoked.id}`)
    const leaving = await app.newAgent({ scopes: ['images'] })
    const left = await issue(['team/app:pull'], '5m', leaving)
    await leaving.client.delete('/v1/self')
    const other = await agent.client.post('/api/v1/credentials', {
      backend: 'others',
      scopes: ['team/app:pull'],
    })
    const logins = [
      `${good.fields.username}:wrong`,
      `cred_00000000000000000000000000:${good.fields.password}`,
      `:${good.fields.password}`,
      loginOf(revoked),
      loginOf(left),
      loginOf(other.body),
      'nonsense',
    ]
    for (const login of logins) {
      const { status, headers, body } = await ask(login, ['repository:team/app:pull'])
      expect([login, status, headers.get('www-authenticate')]).toEqual([
        ...[login, 401],
        'Basic realm="mayfly", charset="UTF-8"',
      ])
      expect(body).toMatchObject({ error: { code: 'unauthorized' } })
    }
    expect((await ask(undefined)).status).toBe(401)
    expect((await ask(loginOf(good))).status).toBe(200)
    expect((await ask(loginOf(other.body), [], 'others')).status).toBe(200)
  })

  test('is there for this kind alone', async () => {
    await app.local.post('/v1/admin/backends', {
      type: 'jwt',
      name: 'reports',
      config: { audiences: ['https://r.test'] },
    })
    for (const name of ['reports', 'none', 'IMAGES']) expect((await ask('a:b', [], name)).status).toBe(404)
    const posted = await fetch(`${app.url}/backends/images/token`, { method: 'POST' })
    expect([404, 405]).toContain(posted.status)
  })

  test('records each token, and a refusal without the password', async () => {
    const issued = await issue(['team/app:pull'])
    await ask(loginOf(issued), ['repository:team/app:pull'])
    const { body } = await app.local.get(`/api/v1/audit?credential=${issued.id}&action=token.issued`)
    expect(body.entries).toMatchObject([
      { action: 'token.issued', backend: 'images', agent_name: agent.name, scopes: ['images:team/app:pull'] },
    ])
    await ask(`${issued.fields.username}:a wrong password`)
    const refused = await eventually(async () => {
      const reply = await app.local.get('/api/v1/audit?action=token.refused&backend=images')
      expect(reply.body.entries.length).toBeGreaterThan(0)
      return reply.text
    })
    expect(refused).not.toContain('a wrong password')
  })

  test('is limited where somebody guesses', async () => {
    const { fields } = await issue(['team/app:pull'])
    const statuses = []
    for (let guess = 0; guess < 15; guess += 1)
      statuses.push((await ask(`${fields.username}:${guess}`)).status)
    expect(statuses.at(-1)).toBe(429)
    // Nobody is locked out by the guesses of others.
    expect((await ask(`${fields.username}:${fields.password}`)).status).toBe(200)
  })
})
