import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { runCli, startWorld, type World } from '../cli/support.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../support/workload-issuer.ts'
import { installMayfly, runGuide } from './run-guide.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

let directory: string
let config: string
let world: World
let issuer: WorkloadIssuer
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-proxy-'))
  config = join(directory, 'mayfly.yaml')
  await writeFile(config, '')
  issuer = await startWorkloadIssuer('kubernetes')
  world = await startWorld({ jobs: true, argv: { config } })
  await world.app.newBackend({ name: 'gateway', config: { audience: 'llm-gateway' }, max_ttl: '1h' })
  // Its login is in its profile: a variable would go before what the administrator has.
  const { token } = await world.app.newAgent({ name: 'coder', scopes: ['gateway:chat'] })
  const env = { ...world.bareEnv, MAYFLY_SERVER: world.url }
  expect(await runCli(['login', '--token-file', '-'], { env, stdin: token })).toMatchObject({ code: 0 })
  await writeFile(join(world.home, 'jwks.json'), JSON.stringify(issuer.jwks))
  await installMayfly(join(world.home, 'bin'))
})
afterAll(async () => {
  await world.close()
  await issuer.close()
  await rm(directory, { recursive: true })
})

/** The administrator sits at the server. */
async function run(page: string, more: readonly (readonly [string, string])[] = []) {
  const env = {
    ...world.bareEnv,
    PATH: `${join(world.home, 'bin')}:${world.bareEnv['PATH']}`,
    MAYFLY_SERVER: world.url,
    MAYFLY_DATA_DIR: world.app.directory,
    MAYFLY_CONFIG: config,
  }
  return runGuide(page, {
    env,
    cwd: world.home,
    replace: [
      ...more,
      ['https://mayfly.example.com', world.url],
      ['/etc/mayfly-proxy/', `${join(world.home, 'mayfly-proxy')}/`],
    ],
  })
}

test('docs/guides/proxy.md does what it says', async () => {
  const seen: string[] = []
  const gateway = createServer((request, reply) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    reply.end('{"data":[]}\n')
  })
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve))
  const { port } = gateway.address() as AddressInfo
  try {
    await run('docs/guides/proxy.md', [
      ['"origin": "https://gateway.example.com"', `"local": true, "origin": "http://127.0.0.1:${port}"`],
    ])
  } finally {
    gateway.close()
  }
  expect(seen).toEqual([expect.stringMatching(/^GET \/v1\/models Bearer eyJ/)])
})

test('docs/guides/proxy-in-ci.md does what it says', async () => {
  await run('docs/guides/proxy-in-ci.md')
  const settings = parse(await readFile(join(world.home, 'proxy.yaml'), 'utf8'))
  const script = await readFile(join(world.home, 'apart.sh'), 'utf8')
  // The user and the file of the settings are those of the script.
  expect(script).toContain(`--reuid ${settings.uids[0]} `)
  expect(script).toContain(`. ${settings.env_file};`)
})

test('docs/guides/proxy-in-kubernetes.md does what it says, and shows what the manifest has', async () => {
  await run('docs/guides/proxy-in-kubernetes.md')
  const read = (path: string) => readFile(join(ROOT, path), 'utf8')
  const page = await read('docs/guides/proxy-in-kubernetes.md')
  const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block = '']) => parse(block))
  const documents = parseAllDocuments(await read('integrations/kubernetes/proxy.yaml'))
  const [account, deployment, map] = documents.map((one) => one.toJS())
  const [settings, ...ofPod] = blocks
  expect(parse(map.data['proxy.yaml'])).toEqual(settings)
  expect(ofPod).toHaveLength(2)
  for (const part of ofPod) {
    const [[kind, [shown]]] = Object.entries<[Record<string, unknown>]>(part) as [
      [string, [Record<string, unknown>]],
    ]
    const [actual] = deployment.spec.template.spec[kind]
    const { volumeMounts, ...rest } = shown
    expect(actual).toMatchObject(rest)
    expect(actual.volumeMounts).toEqual(expect.arrayContaining(volumeMounts as unknown[]))
  }
  const { name, namespace } = account.metadata
  expect(page).toContain(`--namespace ${namespace} --service-account ${name} `)
})

test('docs/guides/proxy-service.md does what it says', async () => {
  await run('docs/guides/proxy-service.md')
  const unit = await readFile(join(ROOT, 'packaging/mayfly-proxy@.service'), 'utf8')
  const of = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]?.replaceAll('%i', 'coder')
  const settings = parse(await readFile(join(world.home, 'mayfly-proxy/coder.yaml'), 'utf8'))
  expect(of('ExecStart')).toBe('/usr/bin/mayfly proxy --config /etc/mayfly-proxy/coder.yaml')
  expect(settings.env_file).toBe(`/run/${of('RuntimeDirectory')}/env`)
  // The login is put where the unit looks for it, by the same user.
  const page = await readFile(join(ROOT, 'docs/guides/proxy-service.md'), 'utf8')
  for (const part of [
    `User=${of('User')}`,
    `StateDirectory=${of('StateDirectory')}`,
    ...(of('Environment') ?? '').split(' '),
  ])
    expect(page).toContain(part)
  expect((await world.app.admin('GET', '/v1/admin/agents/coder')).status).toBe(404)
})
