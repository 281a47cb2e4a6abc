import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type NewAgent, startApp, type TestApp } from '../support/app.ts'
import { createDockerRegistry, type DockerRegistry } from '../support/docker-registry.ts'
import { isInstalled } from '../support/run-program.ts'

interface Credential {
  readonly id: string
  readonly expires_at: string
  readonly fields: { readonly token: string; readonly registry: string; readonly docker_config: string }
}

let app: TestApp
let server: DockerRegistry
let agent: NewAgent
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  server = await createDockerRegistry()
  const address = `http://${server.host}`
  const config = { address, repositories: ['team/app', 'team/web', 'other/app'], local: true }
  const made = await app.local.post('/v1/admin/backends', { type: 'registry', name: 'images', config })
  expect(made.body).toMatchObject({ name: 'images' })
  const { body } = await app.local.get('/v1/admin/backends/images')
  await server.start({ issuer: `${app.url}/backends/images`, certificate: body.config.certificate })
  agent = await app.newAgent({ scopes: ['images:team/*'] })
})
afterAll(async () => {
  await server.close()
  await app.close()
})

async function issue(scopes: readonly string[], ttl = '5m'): Promise<Credential> {
  const reply = await agent.client.post('/api/v1/credentials', { backend: 'images', scopes, ttl })
  expect(reply.status).toBe(201)
  return reply.body
}

/** Exit code and what it said. */
function run(program: string, args: readonly string[], env: Record<string, string> = {}) {
  return new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    const options = { env: { PATH: process.env['PATH'] ?? '', HOME: server.directory, ...env } }
    execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr })
    })
  })
}

const push = ({ fields }: Credential, repository: string) => {
  const tls = ['--dest-tls-verify=false', '--insecure-policy']
  const to = `docker://${server.host}/${repository}:latest`
  return run('skopeo', ['copy', ...tls, '--dest-registry-token', fields.token, server.image, to])
}
const inspect = ({ fields }: Credential, repository: string) => {
  const from = `docker://${server.host}/${repository}:latest`
  return run('skopeo', ['inspect', '--raw', '--tls-verify=false', '--registry-token', fields.token, from])
}

test('skopeo pushes and pulls by scope, and no further', async () => {
  const [pushing, pulling] = [await issue(['team/app:push', 'team/web:push']), await issue(['team/app:pull'])]
  expect(await push(pushing, 'team/app')).toMatchObject({ code: 0 })
  expect(await push(pushing, 'team/web')).toMatchObject({ code: 0 })
  expect(await inspect(pulling, 'team/app')).toMatchObject({
    code: 0,
    output: expect.stringContaining('sha256:'),
  })
  expect((await push(pulling, 'team/app')).code).not.toBe(0)
  expect((await inspect(pulling, 'team/web')).code).not.toBe(0)
  expect((await push(pushing, 'other/app')).code).not.toBe(0)
  const [both] = [await issue(['team/*:pull'])]
  expect((await inspect(both, 'team/web')).code).toBe(0)
  expect((await push(both, 'team/web')).code).not.toBe(0)
})

test('an image is deleted with that permission alone', async () => {
  expect((await push(await issue(['team/app:push']), 'team/app')).code).toBe(0)
  const { fields } = await issue(['team/app'])
  const url = `http://${server.host}/v2/team/app/manifests`
  const accept = 'application/vnd.oci.image.manifest.v1+json'
  const ask = (method: string, reference: string, token: string) =>
    fetch(`${url}/${reference}`, { method, headers: { accept, authorization: `Bearer ${token}` } })
  const digest = (await ask('HEAD', 'latest', fields.token)).headers.get('docker-content-digest') ?? ''
  const pushing = await issue(['team/app:push'])
  expect((await ask('DELETE', digest, pushing.fields.token)).status).toBe(401)
  expect((await ask('DELETE', digest, fields.token)).status).toBe(202)
})

test('expired, it is refused by the registry itself', async () => {
  expect((await push(await issue(['team/app:push']), 'team/app')).code).toBe(0)
  const issued = await issue(['team/app:pull'], '8s')
  expect((await inspect(issued, 'team/app')).code).toBe(0)
  const refused = await eventually(async () => {
    const { code, output } = await inspect(issued, 'team/app')
    expect([code === 0, output]).toEqual([
      false,
      expect.stringMatching(/unauthorized|authentication required/),
    ])
    return Date.now()
  })
  // The token counts whole seconds.
  expect(refused).toBeGreaterThan(Date.parse(issued.expires_at) - 1_000)
})

test('revoked, it lasts until its expiry, which the backend and the reply say', async () => {
  expect((await push(await issue(['team/app:push']), 'team/app')).code).toBe(0)
  const issued = await issue(['team/app:pull'])
  const { body } = await agent.client.get('/api/v1/backends/images')
  expect(body).toMatchObject({ revocation: 'expiry_only' })
  const ended = await agent.client.delete(`/api/v1/credentials/${issued.id}`)
  expect(ended.body).toMatchObject({ revoked: true, upstream: 'expires' })
  expect((await inspect(issued, 'team/app')).code).toBe(0)
})

test.each(['docker'].filter(isInstalled))('%s takes the token from its configuration', async (docker) => {
  expect((await push(await issue(['team/app:push']), 'team/app')).code).toBe(0)
  const { fields } = await issue(['team/app:pull'])
  const directory = join(server.directory, 'docker')
  await mkdir(directory)
  await writeFile(join(directory, 'config.json'), fields.docker_config, { mode: 0o600 })
  const look = (image: string) =>
    run(docker, ['manifest', 'inspect', '--insecure', `${server.host}/${image}:latest`], {
      DOCKER_CONFIG: directory,
    })
  expect(await look('team/app')).toMatchObject({ code: 0, output: expect.stringContaining('sha256:') })
  expect((await look('team/web')).code).not.toBe(0)
})
