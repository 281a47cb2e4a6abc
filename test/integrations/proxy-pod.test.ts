import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { MOUNTED } from '../../src/cli/identity/kubernetes.ts'
import { installMayfly } from '../docs/run-guide.ts'
import { eventually } from '../support/app.ts'
import { presetToken } from '../support/preset-tokens.ts'
import { type KeylessWorld, startKeylessWorld } from './keyless-world.ts'

/** The pod of proxy.yaml, as processes of its users: the agent works through a proxy whose memory and files it cannot read. */
const canBecome = process.getuid?.() === 0
const MANIFEST = fileURLToPath(new URL('../../integrations/kubernetes/proxy.yaml', import.meta.url))
const STRANGER = 1002

interface Container {
  readonly command: readonly string[]
  readonly securityContext: { readonly runAsUser: number }
  readonly startupProbe?: { readonly exec: { readonly command: readonly string[] } }
}

const ENTRY = {
  subject_pattern: 'system:serviceaccount:[^:]+:[^:]+',
  claims: Object.fromEntries(presetToken('kubernetes').pinned),
  agent: 'k8s-{kubernetes.io/pod/uid}',
  scopes: ['gateway'],
  once: false,
}

let world: KeylessWorld
let place: string
let upstream: Server
const seen: string[] = []
const started: ChildProcess[] = []
beforeAll(async () => {
  upstream = createServer((request, reply) => {
    seen.push(request.headers.authorization ?? '')
    reply.end('{"data":[]}\n')
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  world = await startKeylessWorld({ preset: 'kubernetes', entry: ENTRY })
  await world.app.newBackend({ name: 'gateway', max_ttl: '1h' })
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const use = {
    protocol: 'http',
    name: 'api',
    origin,
    local: true,
    places: [{ in: 'header', name: 'authorization' }],
    allow: [{ methods: ['GET'], path: '/v1/models' }],
  }
  const put = await world.app.local.put('/v1/admin/backends/gateway', { uses: { uses: [use] } })
  expect(put.status, put.text).toBe(200)
  place = await mkdtemp(join(tmpdir(), 'mayfly-pod-'))
  await chmod(place, 0o755)
  await installMayfly(join(place, 'bin'))
})
afterAll(async () => {
  // Also where a test has failed before it ended them.
  for (const child of started) child.kill('SIGKILL')
  await world?.close()
  upstream?.close()
  if (place !== undefined) await rm(place, { recursive: true, force: true })
})

/** Runs as a user of the pod, whose volumes are at the places `mounts`. */
function start(uid: number, command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const user = ['--reuid', String(uid), '--regid', String(uid), '--groups', '2000', '--no-new-privs']
  const child = spawn('setpriv', [...user, '--bounding-set=-all', ...command], {
    cwd: place,
    env: { PATH: `${join(place, 'bin')}:${process.env['PATH']}`, HOME: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      log += text
    })
  const ended = once(child, 'close').then(([code]) => ({ code, log }))
  return { child, ended, log: () => log }
}

async function readManifest() {
  const documents = parseAllDocuments(await readFile(MANIFEST, 'utf8')).map((one) => one.toJS())
  const { spec } = documents.find(({ kind }) => kind === 'Deployment').spec.template
  const settings: string = documents.find(({ kind }) => kind === 'ConfigMap').data['proxy.yaml']
  return { proxy: spec.initContainers[0] as Container, agent: spec.containers[0] as Container, settings }
}

test.skipIf(!canBecome)(
  'the agent of the pod works, and reads neither the proxy nor its token',
  async () => {
    const { proxy, agent, settings } = await readManifest()
    const [shared, secrets] = [join(place, 'run'), join(place, 'secrets')]
    const mounts = { '/run/mayfly': shared, '/etc/mayfly-proxy': place, [dirname(MOUNTED)]: secrets }
    const placed = (text: string) =>
      Object.entries(mounts).reduce((all, [from, to]) => all.replaceAll(from, to), text)
    // As the kubelet makes them: a volume of fsGroup, and a token that only one container mounts.
    await mkdir(shared)
    await chown(shared, 0, 2000)
    await chmod(shared, 0o2775)
    await mkdir(secrets, { mode: 0o700 })
    await writeFile(join(secrets, 'token'), world.issuer.sign({ aud: world.url }), { mode: 0o600 })
    for (const path of [secrets, join(secrets, 'token')])
      await chown(path, proxy.securityContext.runAsUser, 1001)
    await writeFile(join(place, 'proxy.yaml'), placed(settings))

    const sidecar = start(proxy.securityContext.runAsUser, proxy.command.map(placed), {
      MAYFLY_SERVER: world.url,
      MAYFLY_IDENTITY_TOKEN_FILE: placed(MOUNTED),
    })
    const probe = proxy.startupProbe?.exec.command.map(placed) ?? []
    await eventually(async () => expect((await start(1001, probe).ended).code, sidecar.log()).toBe(0), 20_000)

    const ask = 'curl -sSf -m 5 -H "Authorization: Bearer $GATEWAY_TOKEN" "$MAYFLY_URL_GATEWAY_API/v1/models"'
    const [shell = '', flag = '', line = ''] = agent.command.map(placed)
    const asAgent = (uid: number, script: string) =>
      start(uid, [shell, flag, line.replace('exec agent', script)]).ended
    expect(await asAgent(agent.securityContext.runAsUser, ask)).toEqual({ code: 0, log: '{"data":[]}\n' })
    const { log: placeholder } = await asAgent(agent.securityContext.runAsUser, 'printf %s "$GATEWAY_TOKEN"')
    expect(seen).toEqual([expect.stringMatching(/^Bearer eyJ/)])
    const [secret = ''] = seen.map((value) => value.slice('Bearer '.length))
    expect(placeholder).not.toBe(secret)

    // What the agent could look at.
    const { pid } = sidecar.child
    for (const path of [`/proc/${pid}/environ`, `/proc/${pid}/mem`, join(secrets, 'token')])
      expect((await asAgent(agent.securityContext.runAsUser, `head -c 1 ${path}`)).code, path).not.toBe(0)
    const files = await asAgent(agent.securityContext.runAsUser, `env; find ${shared} -type f -exec cat {} +`)
    expect(files.log).toContain(placeholder)
    expect(files.log).not.toContain(secret)
    // Another user has the placeholders, and no connection.
    expect((await asAgent(STRANGER, ask)).code).not.toBe(0)
    expect(seen).toHaveLength(1)

    sidecar.child.kill('SIGTERM')
    expect((await sidecar.ended).code).toBe(0)
    expect((await start(1001, probe).ended).code).not.toBe(0)
    const { body } = await world.app.local.get('/v1/admin/tokens?backend=gateway&status=active')
    expect(body).toEqual([])
  },
  60_000,
)
