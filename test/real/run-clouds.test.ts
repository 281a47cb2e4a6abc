import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorld, type World } from '../cli/support.ts'
import { installCommands } from '../cli/tools-support.ts'
import { makeCertificates } from '../support/certificates.ts'
import { startAnthropic } from '../support/fakes/anthropic.ts'
import { startEntra } from '../support/fakes/azure.ts'
import { startGoogle } from '../support/fakes/gcp.ts'
import { startGitHub } from '../support/fakes/github.ts'
import { startKubernetes } from '../support/fakes/kubernetes.ts'
import { makeRsaCertificate } from '../support/rsa-certificate.ts'
import { run } from '../support/run-program.ts'

let world: World
let env: Record<string, string>
beforeAll(async () => {
  world = await startWorld({ scopes: ['*'] })
  env = await installCommands(world)
})
afterAll(() => world.close())

/** Runs a command with a new credential; what it prints. */
async function mayfly(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(['mayfly', ...args], env)
  expect([code, stderr]).toEqual([0, ''])
  return stdout.trim()
}
const printed = (variable: string) => ['--', process.execPath, '-p', `process.env.${variable}`]

describe('without a mapping', () => {
  test('GitHub: both variables and git get the token, which ends with the command', async () => {
    const github = await startGitHub()
    github.install('acme')
    const config = {
      app_id: '4711',
      private_key: github.privateKey,
      owner: 'acme',
      base_url: github.url,
      local: true,
    }
    await world.app.newBackend({ type: 'github', name: 'gh', config })
    const script = `
      const { GH_TOKEN, GITHUB_TOKEN } = process.env
      const headers = { authorization: 'Bearer ' + GITHUB_TOKEN, 'user-agent': 'test' }
      fetch('${github.url}/repos/acme/web', { headers }).then((reply) => console.log(reply.status, GH_TOKEN))`
    const scope = ['--scope', 'acme/web:contents:read']
    const [status, token = ''] = (
      await mayfly('run', '--backend', 'gh', ...scope, '--', process.execPath, '-e', script)
    ).split(' ')
    expect([status, token.slice(0, 4)]).toEqual(['200', 'ghs_'])
    await expect.poll(() => github.tokens.has(token)).toBe(false)

    const asked = { stdin: 'protocol=https\nhost=git.example.com\n\n' }
    const helper = [
      'mayfly',
      'git-credential',
      '--host',
      'git.example.com',
      '--backend',
      'gh',
      ...scope,
      'get',
    ]
    const { stdout } = await run(helper, env, asked)
    const [, password = ''] = /^username=x-access-token\npassword=(\S+)$/m.exec(stdout) ?? []
    expect(github.tokens.get(password)).toMatchObject({ repositories: ['web'] })
    await github[Symbol.asyncDispose]()
  })

  test('Kubernetes: kubectl works, without a key of Mayfly at the API server', async () => {
    const { server: tls, ca } = makeCertificates(world.home)
    const namespaces = ['mayfly-agents', 'shop']
    const kube = await startKubernetes({ tls, namespaces, issuer: world.url })
    const config = {
      server: kube.url,
      ca: readFileSync(ca, 'utf8'),
      audience: 'kubernetes',
      namespaces: ['shop'],
      local: true,
    }
    await world.app.newBackend({ type: 'kubernetes', name: 'k8s', config })
    const kubectl = ['kubectl', 'get', '--raw', '/api/v1/namespaces/shop/pods']
    expect(await mayfly('run', '--backend', 'k8s', '--scope', 'shop:view', '--', ...kubectl)).toContain(
      'PodList',
    )
    await expect.poll(() => kube.accounts.size + kube.bindings.size).toBe(0)
    await kube[Symbol.asyncDispose]()
  })

  test('Google Cloud believes the id tokens of the server', async () => {
    const google = await startGoogle(world.url)
    const config = {
      service_account: google.target,
      provider: google.provider,
      endpoint: google.url,
      local: true,
    }
    await world.app.newBackend({ type: 'gcp', name: 'cloud', config, max_ttl: '1h' })
    const token = await mayfly('run', '--backend', 'cloud', ...printed('CLOUDSDK_AUTH_ACCESS_TOKEN'))
    expect(google.tokens.get(token)?.scopes).toEqual(['https://www.googleapis.com/auth/cloud-platform'])
    await google[Symbol.asyncDispose]()
  })

  test('so do Microsoft Entra and Anthropic', async () => {
    const entra = await startEntra(world.url, makeRsaCertificate('unused').certificate)
    entra.federated.subject = 'backend/az'
    const ids = { tenant_id: entra.tenant, client_id: entra.client, authority: entra.url, local: true }
    await world.app.newBackend({ type: 'azure', name: 'az', config: ids })
    const bearer = await mayfly('run', '--env', 'BEARER=az', ...printed('BEARER'))
    expect(entra.tokens.get(bearer)).toBe('https://management.azure.com')

    const claude = await startAnthropic(world.url)
    const config = { ...claude.ids, base_url: claude.url, local: true }
    await world.app.newBackend({ type: 'anthropic', name: 'claude', config })
    // Anthropic's own library, given nothing but the address of its API.
    const script = `
      import Anthropic from '@anthropic-ai/sdk'
      const client = new Anthropic({ baseURL: '${claude.url}', maxRetries: 0 })
      for await (const { id } of client.models.list()) console.log(id, client.authToken)`
    const listing = ['--', process.execPath, '--input-type=module', '-e', script]
    const [model, token = ''] = (await mayfly('run', '--backend', 'claude', ...listing)).split(' ')
    expect([model, claude.tokens.get(token)?.workspace]).toEqual(['claude-fake', 'default'])
    await claude[Symbol.asyncDispose]()
    await entra[Symbol.asyncDispose]()
  })
})
