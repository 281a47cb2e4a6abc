import { decode } from '@nats-io/jwt'
import { connect, credsAuthenticator } from '@nats-io/transport-node'
import type { Issued } from '../../src/backends/kind.ts'
import { nats } from '../../src/backends/nats/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startNats } from '../support/nats-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('nats', async (): Promise<OpenKind> => {
  const server = await startNats()
  const { host, logged } = createTestHost('nats')
  const settings = { url: server.url, account: server.account, signing_key: server.signingSeed }
  return {
    kind: nats as unknown as OpenKind['kind'],
    backend: await nats.open(settings, host),
    scopes: ['contract.*'],
    logged,
    probe: {
      async use(issued: Issued) {
        const creds = new TextEncoder().encode(String(issued.fields?.['creds']))
        const connection = await connect({ servers: server.url, authenticator: credsAuthenticator(creds) })
        connection.publish('contract.a')
        await connection.flush()
        await connection.close()
        return true
      },
      expiresAt: async (issued: Issued) => (decode(String(issued.fields?.['jwt'])).exp ?? 0) * 1000,
    },
    close: () => server.stop(),
  }
})
