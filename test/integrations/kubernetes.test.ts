import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { MOUNTED } from '../../src/cli/identity/kubernetes.ts'
import { recordsOf } from '../cli/run-support.ts'
import { installMayfly } from '../docs/run-guide.ts'
import { eventually } from '../support/app.ts'
import { hasPrograms } from '../support/needed-programs.ts'
import { presetToken } from '../support/preset-tokens.ts'
import { type KeylessWorld, startKeylessWorld } from './keyless-world.ts'

const FOLDER = fileURLToPath(new URL('../../integrations/kubernetes/', import.meta.url))
const FILES = ['job.yaml', 'sidecar.yaml', 'proxy.yaml']
const SERVER = 'https://mayfly.example.com'

interface Container {
  readonly name: string
  readonly command: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly startupProbe?: { readonly exec: { readonly command: readonly string[] } }
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly securityContext: { readonly runAsUser?: number }
}

interface Pod {
  readonly serviceAccountName: string
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly shareProcessNamespace?: boolean
  readonly volumes: readonly {
    readonly name: string
    readonly projected?: {
      readonly sources: readonly { readonly serviceAccountToken: Readonly<Record<string, unknown>> }[]
    }
  }[]
}

async function manifest(name: string) {
  const documents = parseAllDocuments(await readFile(join(FOLDER, name), 'utf8'))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const [account, workload] = documents.map((one) => one.toJS())
  return { account, workload, pod: workload.spec.template.spec as Pod }
}

const pinned = Object.fromEntries(presetToken('kubernetes').pinned)

describe.each(FILES)('%s', (name) => {
  test('mounts a token for Mayfly alone where the command looks for one', async () => {
    const { account, pod } = await manifest(name)
    expect(account).toMatchObject({ kind: 'ServiceAccount', automountServiceAccountToken: false })
    expect(pod).toMatchObject({
      serviceAccountName: account.metadata.name,
      automountServiceAccountToken: false,
    })
    const [volume, ...others] = pod.volumes.filter(({ projected }) => projected !== undefined)
    expect(others).toEqual([])
    // Kubernetes gives no shorter ones.
    const token = { path: 'token', audience: SERVER, expirationSeconds: 600 }
    expect(volume?.projected?.sources).toEqual([{ serviceAccountToken: token }])
    // Of several containers only the one that runs mayfly has it.
    const users = [...(pod.initContainers ?? []), ...pod.containers].filter(({ volumeMounts }) =>
      volumeMounts.some(({ name }) => name === volume?.name),
    )
    expect(users).toHaveLength(1)
    expect(users[0]?.command.join(' ')).toMatch(/\bmayfly (?:run|proxy)\b/)
    expect(users[0]?.volumeMounts).toContainEqual({
      name: volume?.name,
      mountPath: dirname(MOUNTED),
      readOnly: true,
    })
    expect(users[0]?.env).toContainEqual({ name: 'MAYFLY_SERVER', value: SERVER })
  })

  test.skipIf(!hasPrograms('kubectl'))('has only fields that kubectl knows', async () => {
    const { workload } = await manifest(name)
    const expected = structuredClone(workload)
    // Kubernetes 1.28 has the first version of sidecars.
    if (minorOfKubectl() < 28)
      for (const one of expected.spec.template.spec.initContainers ?? []) delete one.restartPolicy
    // It drops the fields that its types lack, and prints only what it changes: a variable of each container.
    const argv = ['set', 'env', '--local', '--filename', '-', 'ADDED=1', '--output', 'json']
    const read = JSON.parse(kubectl(argv, JSON.stringify(workload)))
    const { containers, initContainers = [] } = read.spec.template.spec as Pod
    for (const { env } of [...containers, ...initContainers])
      (env as unknown[]).splice(0, env.length, ...env.filter((one) => one.name !== 'ADDED'))
    expect(read).toMatchObject(expected)
  })
})

describe('the pod with a proxy', () => {
  const parts = async () => {
    const { pod } = await manifest('proxy.yaml')
    const [proxy] = pod.initContainers ?? []
    const [agent, ...others] = pod.containers
    if (proxy === undefined || agent === undefined || others.length > 0) throw new Error('not two containers')
    return { pod, proxy, agent, settings: await proxySettings() }
  }

  test('keeps the agent away from the token and the processes of the proxy', async () => {
    const { pod, proxy, agent } = await parts()
    expect(pod.shareProcessNamespace).toBe(false)
    expect(agent.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/run/mayfly', '/tmp'])
    expect(agent.env).toBeUndefined()
    const users = [proxy, agent].map(({ securityContext }) => securityContext.runAsUser)
    expect(new Set(users).size).toBe(2)
    for (const { securityContext } of [proxy, agent])
      expect(securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
  })

  test('has settings that fit: the agent reads the environment that the proxy writes, and alone may connect', async () => {
    const { proxy, agent, settings } = await parts()
    expect(settings.uids).toEqual([agent.securityContext.runAsUser])
    const place = dirname(settings.env_file)
    expect(proxy.startupProbe?.exec.command).toEqual(['test', '-s', settings.env_file])
    expect(agent.command.join(' ')).toContain(settings.env_file)
    const mount = ({ volumeMounts }: Container) => volumeMounts.find(({ mountPath }) => mountPath === place)
    expect(mount(proxy)).toEqual({ name: 'environment', mountPath: place })
    expect(mount(agent)).toEqual({ name: 'environment', mountPath: place, readOnly: true })
  })
})

async function proxySettings(): Promise<{ readonly env_file: string; readonly uids: readonly number[] }> {
  const documents = parseAllDocuments(await readFile(join(FOLDER, 'proxy.yaml'), 'utf8'))
  const map = documents.map((one) => one.toJS()).find(({ kind }) => kind === 'ConfigMap')
  return parse(map.data['proxy.yaml'])
}

const kubectl = (argv: readonly string[], input = '') =>
  execFileSync('kubectl', argv, {
    encoding: 'utf8',
    input,
    env: { PATH: process.env['PATH'], KUBECONFIG: '/dev/null' },
  })

const minorOfKubectl = () =>
  Number.parseInt(JSON.parse(kubectl(['version', '--client', '--output', 'json'])).clientVersion.minor, 10)

const ENTRY = {
  subject_pattern: 'system:serviceaccount:[^:]+:[^:]+',
  claims: pinned,
  agent: 'k8s-{kubernetes.io/pod/uid}',
  scopes: ['reports'],
  once: false,
}

let world: KeylessWorld
beforeAll(async () => {
  world = await startKeylessWorld({ preset: 'kubernetes', entry: ENTRY })
  await world.app.newBackend({ name: 'reports', default_ttl: '4s', max_ttl: '1h' })
  await installMayfly(join(world.home, 'bin'))
})
afterAll(() => world.close())

/** Writes a token as kubelet does: into a directory of its own, to which a link is switched. */
async function project(directory: string): Promise<void> {
  const version = `..version-${(await readdir(directory).catch(() => [])).length}`
  await mkdir(join(directory, version), { recursive: true })
  await writeFile(join(directory, version, 'token'), world.issuer.sign({ aud: world.url }), { mode: 0o600 })
  await symlink(`${version}/token`, join(directory, 'token'))
}

/** Runs the command of a container, with its volumes at the places `mounts` of this machine. */
async function start(container: Container, mounts: Readonly<Record<string, string>>) {
  const placed = (text: string) =>
    Object.entries({ ...mounts, [SERVER]: world.url }).reduce(
      (all, [from, to]) => all.replaceAll(from, to),
      text,
    )
  const [program = '', ...argv] = container.command.map(placed)
  const given = Object.fromEntries(container.env.map(({ name, value }) => [name, placed(value)]))
  const child = spawn(program, argv, {
    cwd: world.home,
    env: {
      ...world.bareEnv,
      PATH: `${join(world.home, 'bin')}:${world.bareEnv['PATH']}`,
      ...given,
      MAYFLY_IDENTITY_TOKEN_FILE: placed(MOUNTED),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      log += text
    })
  const ended = once(child, 'close').then(([code]) => ({ code, log }))
  return { child, ended, placed }
}

const AGENT = /^k8s-/

test('the job runs with a credential that ends with it', async () => {
  const { pod } = await manifest('job.yaml')
  const secrets = join(world.home, 'job', 'secrets')
  await project(secrets)
  await writeFile(
    join(world.home, 'report.sh'),
    '#!/bin/sh\nprintf %s "$REPORTS_TOKEN" >got.txt; echo "with $REPORTS_TOKEN"\n',
    { mode: 0o755 },
  )
  const [container] = pod.containers
  if (container === undefined) throw new Error('no container')
  const { ended } = await start(container, { [dirname(MOUNTED)]: secrets })
  const { code, log } = await ended
  expect({ code, log }).toMatchObject({ code: 0 })
  expect(await readFile(join(world.home, 'got.txt'), 'utf8')).toMatch(/^eyJ/)
  expect(log).not.toContain('eyJ')
  const [name = ''] = await world.agents()
  expect(name).toMatch(AGENT)
  expect(await recordsOf(world, { name })).toMatchObject([{ backend: 'reports', status: 'revoked' }])
})

test('the sidecar keeps a fresh credential in the shared directory until the pod ends', async () => {
  const { pod } = await manifest('sidecar.yaml')
  const [sidecar] = pod.initContainers ?? []
  if (sidecar?.startupProbe === undefined) throw new Error('no sidecar with a probe')
  const [credentials, secrets] = [join(world.home, 'credentials'), join(world.home, 'sidecar', 'secrets')]
  await mkdir(credentials)
  await project(secrets)
  const before = (await allRecords()).length
  const { child, ended, placed } = await start(sidecar, {
    '/credentials': credentials,
    [dirname(MOUNTED)]: secrets,
  })
  const [probe = '', ...argv] = sidecar.startupProbe.exec.command.map(placed)
  await eventually(async () => execFileSync(probe, argv))
  // Where the other container looks.
  const file = placed(pod.containers[0]?.env.find(({ name }) => name === 'REPORTS_TOKEN_FILE')?.value ?? '')
  const first = await readFile(file, 'utf8')
  expect(first).toMatch(/^eyJ/)
  await eventually(async () => expect(await readFile(file, 'utf8')).not.toBe(first))
  child.kill('SIGTERM')
  const { code, log } = await ended
  expect({ code, log }).toEqual({ code: 143, log: '' })
  await expect(readFile(file)).rejects.toThrow('ENOENT')
  const own = (await allRecords()).slice(before)
  expect(own.length).toBeGreaterThan(1)
  expect(own.filter(({ status }) => status === 'active')).toEqual([])
})

async function allRecords() {
  const [name] = await world.agents()
  return name === undefined ? [] : recordsOf(world, { name })
}
