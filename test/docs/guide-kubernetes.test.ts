import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli, startWorld, type World } from '../cli/support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startKubeApi } from '../support/kube-api.ts'
import { installMayfly, runGuide } from './run-guide.ts'

let world: World
let api: Awaited<ReturnType<typeof startKubeApi>>
beforeEach(async () => {
  world = await startWorld({ scopes: ['kube:*'] })
  const { ca, server } = makeCertificates(world.home)
  api = await startKubeApi(`${world.url}/backends/kube`, server)
  await mkdir(join(world.home, '.kube'))
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tests', cluster: { server: api.url, 'certificate-authority': ca } }],
    contexts: [{ name: 'tests', context: { cluster: 'tests' } }],
    'current-context': 'tests',
  }
  await writeFile(join(world.home, '.kube', 'config'), JSON.stringify(config))
})
afterEach(async () => {
  api.close()
  await world.close()
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
    }
    const old = [['--print > ', '--print --api-version v1beta1 > ']] as const
    const results = await runGuide(page, {
      env,
      cwd: world.home,
      replace: isOldKubectl() ? old : [],
    })
    expect([...new Set(api.seen)]).toEqual([`token:${world.agent.name}`])
    expect(results.map(({ output }) => output).join('')).toContain(`token-${world.agent.name}`)
  },
)
