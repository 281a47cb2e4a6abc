import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { newHome, runCli, startWorld, type World } from '../cli/support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startKubeApi } from '../support/kube-api.ts'
import { startWorkloadIssuer, type WorkloadIssuer } from '../support/workload-issuer.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let directory: string
let config: string
let issuer: WorkloadIssuer
let api: Awaited<ReturnType<typeof startKubeApi>>
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'mayfly-pods-'))
  config = join(directory, 'mayfly.yaml')
  await writeFile(config, '')
  issuer = await startWorkloadIssuer('kubernetes')
  world = await startWorld({ scopes: ['kube:*'], argv: { config } })
  await world.app.newBackend({ name: 'reports' })
  await writeFile(join(world.home, 'jwks.json'), JSON.stringify(issuer.jwks))
  const { ca, server } = makeCertificates(world.home)
  api = await startKubeApi(`${world.url}/backends/kube`, server)
  await mkdir(join(world.home, '.kube'))
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tests', cluster: { server: api.url, 'certificate-authority': ca } }],
    contexts: [{ name: 'tests', context: { cluster: 'tests' } }],
    'current-context': 'tests',
  }
  await writeFile(join(world.home, '.kube', 'config'), JSON.stringify(kubeconfig))
})
afterEach(async () => {
  api.close()
  await world.close()
  await issuer.close()
  await rm(directory, { recursive: true })
})

/** That of Debian is older than v1. */
function isOldKubectl(): boolean {
  const text = execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' })
  return Number.parseInt(JSON.parse(text).clientVersion.minor, 10) < 22
}

test.each(['docs/start/on-kubernetes.md', 'docs/guides/kubernetes.md'])(
  '%s does what it says',
  async (page) => {
    const bin = join(world.home, 'bin')
    await installMayfly(bin)
    // The agent's login is in its profile: a variable would go before the administrator's token.
    const bare: Record<string, string> = { ...world.bareEnv, MAYFLY_SERVER: world.url }
    const login = await runCli(['login', '--token-file', '-'], { env: bare, stdin: world.agent.token })
    expect(login).toMatchObject({ code: 0 })
    const env = {
      ...bare,
      PATH: `${bin}:${bare['PATH']}`,
      MAYFLY_DATA_DIR: world.app.directory,
      MAYFLY_CONFIG: config,
    }
    const old = [['--print > ', '--print --api-version v1beta1 > ']] as const
    const results = await runGuide(page, {
      env,
      cwd: world.home,
      replace: [['https://mayfly.example.com', world.url], ...(isOldKubectl() ? old : [])],
    })
    expect([...new Set(api.seen)]).toEqual([`token:${world.agent.name}`])
    expect(results.map(({ output }) => output).join('')).toContain(`token-${world.agent.name}`)
    if (page === 'docs/guides/kubernetes.md') await runPod(page)
  },
)

/** What the page shows of a pod is what the manifest has, and the pod of the entry gets what the page says. */
async function runPod(page: string): Promise<void> {
  const read = (path: string) => readFile(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
  const [, block = ''] = /^```yaml\n(containers:[\s\S]*?)^```$/m.exec(await read(page)) ?? []
  const { containers, volumes } = parse(block)
  const [, job] = parseAllDocuments(await read('integrations/kubernetes/job.yaml')).map((one) => one.toJS())
  expect(job.spec.template.spec).toMatchObject({ containers, volumes })

  const account = { name: 'nightly-report', uid: '14ee3fa4-a7e2-420f-9f9a-dbc4507c3798' }
  const claims = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    aud: [world.url],
    sub: 'system:serviceaccount:reports:nightly-report',
    'kubernetes.io': { namespace: 'reports', pod: { name: 'p', uid: 'uid-of-pod' }, serviceaccount: account },
  }
  const { env } = await newHome()
  const file = join(directory, 'token')
  const pod = { ...env, MAYFLY_SERVER: world.url, MAYFLY_IDENTITY_TOKEN_FILE: file }
  await writeFile(file, issuer.sign({ ...claims, jti: 'other', aud: 'https://kubernetes.default.svc' }))
  expect(await runCli(['get', 'reports'], { env: pod })).toMatchObject({ code: 4 })
  await writeFile(file, issuer.sign(claims))
  expect(await runCli(['get', 'reports'], { env: pod })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^eyJ/),
  })
  const { body } = await world.app.admin('GET', '/v1/admin/agents')
  const names = body.map(({ name }: { name: string }) => name)
  expect(names).toContain('kubernetes-reports-nightly-report-uid-of-pod')
}
