import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { installCommands, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { createDockerRegistry } from '../support/docker-registry.ts'
import { type Registry, startRegistry } from '../support/oci-registry.ts'
import { isInstalled, run } from '../support/run-program.ts'

/** Both ask docker-credential-mayfly by the library of docker; neither needs a daemon for this. */
const CLIENTS = {
  docker: (host: string) => ['docker', 'manifest', 'inspect', '--insecure', `${host}/image:latest`],
  skopeo: (host: string) => [
    ...['skopeo', 'inspect', '--raw', '--tls-verify=false', '--authfile'],
    ...['.docker/config.json', `docker://${host}/image:latest`],
  ],
}
const LOGOUT = {
  docker: (host: string) => ['docker', 'logout', host],
  skopeo: (host: string) => ['skopeo', 'logout', '--authfile', '.docker/config.json', host],
}
const clients = (['docker', 'skopeo'] as const).filter(isInstalled)

let world: ToolsWorld
let env: Record<string, string>
let registry: Registry
let other: Registry
beforeAll(async () => {
  world = await startToolsWorld()
  await world.add('images', { fields: { username: 'robot', password: 'pull-{id}' } })
  registry = await startRegistry((name, password) => name === 'robot' && password.startsWith('pull-cred_'))
  other = await startRegistry(() => true)
  env = { ...(await installCommands(world)), DOCKER_CONFIG: join(world.home, '.docker') }
  await mkdir(String(env['DOCKER_CONFIG']))
  await writeFile(join(world.home, '.docker', 'config.json'), '{"detachKeys":"ctrl-e,e"}')
  const setup = ['mayfly', 'helper', 'docker', '--write', '--host', registry.host, '--backend', 'images']
  expect(await run(setup, env)).toMatchObject({ code: 0, stderr: '' })
})
afterAll(async () => {
  registry.close()
  other.close()
  await world.close()
})

const ask = (client: (typeof clients)[number], host: string, more: Record<string, string> = {}) =>
  run(CLIENTS[client](host), { ...env, ...more }, { cwd: world.home })

test('a client is installed', () => {
  expect(clients).not.toEqual([])
})

test('keeps other settings in the configuration of docker', async () => {
  const config = JSON.parse(await readFile(join(world.home, '.docker', 'config.json'), 'utf8'))
  expect(config).toEqual({ detachKeys: 'ctrl-e,e', credHelpers: { [registry.host]: 'mayfly' } })
})

describe.each(clients)('%s', (client) => {
  test('reads an image with our credential, the same each time', async () => {
    const before = registry.seen.length
    for (const _ of [1, 2]) {
      const end = await ask(client, registry.host)
      expect(end).toMatchObject({ code: 0 })
      expect(end.stdout).toContain('sha256:')
    }
    const [id] = await world.alive('images')
    const seen = registry.seen.slice(before)
    expect(seen.length).toBeGreaterThan(1)
    expect([...new Set(seen)]).toEqual([`robot:pull-${id}`])
  })

  test('sends no credential to other registries', async () => {
    const before = other.seen.length
    expect((await ask(client, other.host)).code).toBe(0)
    expect([...new Set(other.seen.slice(before))]).toEqual([':'])
  })

  test('is refused with a wrong login and says why', async () => {
    const before = registry.seen.length
    const end = await ask(client, registry.host, { MAYFLY_TOKEN: 'ckr_wrong' })
    expect(end.code).not.toBe(0)
    expect(end.stderr).toContain('MAYFLY_TOKEN is set and takes precedence over a stored login. Correct it')
    expect(registry.seen).toHaveLength(before)
  })

  test('logout revokes the credential', async () => {
    await ask(client, registry.host)
    expect(await world.alive('images')).toHaveLength(1)
    const end = await run(LOGOUT[client](registry.host), env, { cwd: world.home })
    expect(end).toMatchObject({ code: 0 })
    expect(await world.alive('images')).toEqual([])
  })
})

test.each(clients)(
  '%s uses a backend of kind registry, whose tokens it gets at the realm',
  async (client) => {
    const server = await createDockerRegistry()
    const name = `tokens-${client}`
    const address = `http://${server.host}`
    await world.app.newBackend({
      type: 'registry',
      name,
      config: { address, repositories: ['image'], local: true },
    })
    const { body } = await world.app.local.get(`/v1/admin/backends/${name}`)
    const keys = await world.app.local.get(`/backends/${name}/.well-known/openid-configuration`)
    const realm = `${world.url}/backends/${name}/token`
    await server.start({ issuer: keys.body.issuer, certificate: body.config.certificate, realm })
    const setup = ['mayfly', 'helper', 'docker', '--write', '--host', server.host, '--backend', name]
    expect(await run(setup, env)).toMatchObject({ code: 0, stderr: '' })
    // The registry has no image: whoever may not look is told something else.
    const end = await ask(client, server.host)
    expect(end.stderr).toMatch(/manifest unknown|no such manifest/)
    expect(await world.alive(name)).toHaveLength(1)
    await server.close()
  },
)
