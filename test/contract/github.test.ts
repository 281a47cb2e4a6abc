import { Octokit } from '@octokit/rest'
import type { Config } from '../../src/backends/github/config.ts'
import { github } from '../../src/backends/github/kind.ts'
import type { Handle, Issued } from '../../src/backends/kind.ts'
import { startGitHub } from '../support/fakes/github.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('github', async (): Promise<OpenKind> => {
  const fake = await startGitHub()
  fake.install('acme')
  const { host, logged } = createTestHost('gh')
  const settings: Config = {
    app_id: String(fake.app.id),
    private_key: fake.privateKey,
    owner: 'acme',
    base_url: fake.url,
    local: true,
  }
  return {
    kind: github as unknown as OpenKind['kind'],
    backend: await github.open(settings, host),
    config: settings,
    scopes: ['acme/web:contents:write'],
    // `environmentFor` has it from the configuration.
    absentFields: ['host'],
    logged,
    unreachable: () => github.open({ ...settings, base_url: 'http://127.0.0.1:1' }, host),
    hostile: (url) => github.open({ ...settings, base_url: url }, host),
    probe: {
      exists: async (handle: Handle) => fake.tokens.has(String(handle['token'])),
      async use(issued: Issued) {
        const octokit = new Octokit({ auth: issued.secret, baseUrl: fake.url })
        const { data } = await octokit.repos.get({ owner: 'acme', repo: 'web' })
        return data.full_name === 'acme/web'
      },
    },
    close: async () => fake[Symbol.asyncDispose](),
  }
})
