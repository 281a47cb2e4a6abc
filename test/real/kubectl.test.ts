import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plainKubeconfig } from '../../src/cli/run/plain-kubeconfig.ts'
import { runCli } from '../cli/support.ts'
import { installCommands, startToolsWorld, type ToolsWorld } from '../cli/tools-support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startKubeApi } from '../support/kube-api.ts'
import { run } from '../support/run-program.ts'

let world: ToolsWorld
let env: Record<string, string>
let api: Awaited<ReturnType<typeof startKubeApi>>
let cluster: string
beforeAll(async () => {
  world = await startToolsWorld()
  const certificates = makeCertificates(world.home)
  await world.app.newBackend({ name: 'kube', config: { audience: 'kubernetes' }, max_ttl: '1h' })
  await world.add('kube-cert', {
    fields: { client_certificate: certificates.client.cert, client_key: certificates.client.key },
  })
  api = await startKubeApi(`${world.url}/backends/kube`, certificates.server)
  env = await installCommands(world)
  await mkdir(join(world.home, '.kube'))
  cluster = join(world.home, '.kube', 'config')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tests', cluster: { server: api.url, 'certificate-authority': certificates.ca } }],
    contexts: [{ name: 'tests', context: { cluster: 'tests', user: 'mayfly' } }],
    'current-context': 'tests',
  }
  await writeFile(cluster, JSON.stringify(config))
})
afterAll(async () => {
  api.close()
  await world.close()
})

/** A server's version, asked as the user that we print for this backend. */
async function askAs(backend: string, version: string, more: Record<string, string> = {}) {
  const argv = ['--backend', backend, '--print', '--api-version', version]
  const printed = await runCli(['kubectl-credential', ...argv], { env })
  expect([printed.code, printed.stderr]).toEqual([0, ''])
  const user = join(world.home, '.kube', `${backend}.yaml`)
  await writeFile(user, printed.stdout)
  // Not `version`: that goes on without an answer of the server.
  return run(['kubectl', 'get', '--raw', '/version'], { ...env, ...more, KUBECONFIG: `${cluster}:${user}` })
}

/** kubectl before 1.22 supports only v1beta1, later versions both. */
const { clientVersion } = JSON.parse(
  execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' }),
) as { clientVersion: { minor: string } }
const versions = Number.parseInt(clientVersion.minor, 10) < 22 ? ['v1beta1'] : ['v1beta1', 'v1']

describe.each(versions)('kubectl with exec plugins of %s', (version) => {
  test('authenticates with a token, the same each time', async () => {
    const before = await world.alive('kube')
    for (const _ of [1, 2]) {
      const end = await askAs('kube', version)
      expect([end.code, end.stderr]).toEqual([0, ''])
      expect(end.stdout).toContain(`token-${world.agent.name}`)
    }
    expect(await world.alive('kube')).toHaveLength(Math.max(before.length, 1))
  })

  test('authenticates with a client certificate', async () => {
    const end = await askAs('kube-cert', version)
    expect([end.code, end.stderr]).toEqual([0, ''])
    expect(end.stdout).toContain('certificate-agent-client')
  })

  test('uses another token after the first was revoked', async () => {
    await askAs('kube', version)
    const [id] = await world.alive('kube')
    await world.agent.client.delete(`/api/v1/credentials/${id}`)
    expect((await askAs('kube', version)).code).toBe(0)
    expect(await world.alive('kube')).not.toContain(id)
  })

  test('is refused and shows our reason with a wrong login', async () => {
    const seen = api.seen.length
    const end = await askAs('kube', version, { MAYFLY_TOKEN: 'ckr_wrong' })
    expect(end.code).not.toBe(0)
    expect(end.stderr).toContain('mayfly: ')
    expect(end.stderr).toContain('MAYFLY_TOKEN is set and takes precedence over a stored login. Correct it')
    expect(api.seen).toHaveLength(seen)
  })
})

test('kubectl reads a kubeconfig as `mayfly run` leaves it', async () => {
  const text = `apiVersion: v1
kind: Config
current-context: mayfly
clusters: [{ name: mayfly, cluster: { server: "https://k8s.example:6443" } }]
users: [{ name: u, user: { token: abc } }]
contexts: [{ name: mayfly, context: { cluster: mayfly, user: u, namespace: shop } }]
`
  const file = join(world.home, 'plain.json')
  await writeFile(file, await plainKubeconfig(text))
  const argv = [
    'kubectl',
    'config',
    'view',
    '--raw',
    '-o',
    'jsonpath={.users[0].user.token} {.contexts[0].context.namespace}',
  ]
  expect(await run(argv, { ...env, KUBECONFIG: file })).toMatchObject({ stdout: 'abc shop' })
})
