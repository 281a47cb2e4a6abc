import Anthropic from '@anthropic-ai/sdk'
import { anthropic, type Config } from '../../src/backends/anthropic/kind.ts'
import type { Issued } from '../../src/backends/kind.ts'
import { startAnthropic } from '../support/fakes/anthropic.ts'
import { startIssuer } from '../support/fakes/issuer.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('anthropic', async (): Promise<OpenKind> => {
  const issuer = await startIssuer()
  const fake = await startAnthropic(issuer.url)
  const { host: plain, logged } = createTestHost('claude')
  const host = issuer.trust(plain)
  const settings: Config = {
    ...fake.ids,
    workspaces: ['wrkspc_01team'],
    audience: fake.rule.audience,
    base_url: fake.url,
    local: true,
  }
  return {
    kind: anthropic as unknown as OpenKind['kind'],
    backend: await anthropic.open(settings, host),
    config: settings,
    scopes: ['wrkspc_01team'],
    logged,
    hostile: (url) => anthropic.open({ ...settings, base_url: url }, host),
    probe: {
      async use({ secret }: Issued) {
        const client = new Anthropic({
          authToken: String(secret),
          apiKey: null,
          baseURL: fake.url,
          maxRetries: 0,
        })
        const { data } = await client.models.list()
        return data[0]?.display_name === 'wrkspc_01team'
      },
    },
    async close() {
      await fake[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
})
