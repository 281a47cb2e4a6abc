import { OAuth2Client } from 'google-auth-library'
import type { Config } from '../../src/backends/gcp/config.ts'
import { gcp } from '../../src/backends/gcp/kind.ts'
import type { Issued } from '../../src/backends/kind.ts'
import { startGoogle } from '../support/fakes/gcp.ts'
import { startIssuer } from '../support/fakes/issuer.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('gcp, by a key', () => openWith('key'))
describeKind('gcp, by federation', () => openWith('provider'))

async function openWith(way: 'key' | 'provider'): Promise<OpenKind> {
  const issuer = await startIssuer()
  const fake = await startGoogle(issuer.url)
  const { host: plain, logged } = createTestHost('cloud')
  const host = issuer.trust(plain)
  const settings: Config = {
    service_account: fake.target,
    [way]: fake[way],
    oauth_scopes: ['cloud-platform', 'devstorage.read_only'],
    endpoint: fake.url,
    local: true,
  }
  return {
    kind: gcp as unknown as OpenKind['kind'],
    backend: await gcp.open(settings, host),
    config: settings,
    scopes: ['devstorage.read_only'],
    logged,
    unreachable: () => gcp.open({ ...settings, endpoint: 'http://127.0.0.1:1' }, host),
    hostile: (url) => gcp.open({ ...settings, endpoint: url }, host),
    probe: {
      async use({ secret }: Issued) {
        const client = new OAuth2Client()
        client.setCredentials({ access_token: String(secret) })
        const { status } = await client.request({ url: `${fake.url}/storage/v1/b/bucket/o` })
        return status === 200
      },
    },
    async close() {
      await fake[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}
