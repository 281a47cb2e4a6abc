import type { Config } from '../../src/backends/azure/config.ts'
import { azure } from '../../src/backends/azure/kind.ts'
import type { Issued } from '../../src/backends/kind.ts'
import { startEntra } from '../support/fakes/azure.ts'
import { startIssuer } from '../support/fakes/issuer.ts'
import { createTestHost } from '../support/host.ts'
import { makeRsaCertificate } from '../support/rsa-certificate.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

for (const way of ['a secret', 'a certificate', 'federation'] as const) {
  describeKind(`azure, by ${way}`, () => openWith(way))
}

async function openWith(way: 'a secret' | 'a certificate' | 'federation'): Promise<OpenKind> {
  const issuer = await startIssuer()
  const pair = makeRsaCertificate('mayfly')
  const fake = await startEntra(issuer.url, pair.certificate)
  const { host: plain, logged } = createTestHost('cloud')
  const host = issuer.trust(plain)
  const settings: Config = {
    tenant_id: fake.tenant,
    client_id: fake.client,
    audience: 'api://AzureADTokenExchange',
    resources: ['management.azure.com'],
    authority: fake.url,
    local: true,
    ...(way === 'a secret' && { client_secret: fake.secret }),
    ...(way === 'a certificate' && { certificate: pair.certificate, private_key: pair.key }),
  }
  return {
    kind: azure as unknown as OpenKind['kind'],
    backend: await azure.open(settings, host),
    config: settings,
    scopes: ['management.azure.com'],
    logged,
    hostile: (url) => azure.open({ ...settings, authority: url }, host),
    probe: {
      async use({ secret }: Issued) {
        const headers = { authorization: `Bearer ${secret}` }
        return (await fetch(`${fake.url}/subscriptions?api-version=2022-12-01`, { headers })).ok
      },
    },
    async close() {
      await fake[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
