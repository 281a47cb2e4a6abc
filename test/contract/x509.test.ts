import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { Issued, Kind } from '../../src/backends/kind.ts'
import { x509 } from '../../src/backends/x509/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startTlsServer } from '../support/tls-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('x509', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('workers')
  const settings = await x509.complete?.({ names: ['worker', 'app'], usage: 'client' })
  if (settings === undefined) throw new Error('x509 completes its configuration')
  const backend = await x509.open(settings, host)
  const list = await backend.revocationList?.([])
  const server = await startTlsServer(settings.ca_certificate ?? '', list?.body ?? Buffer.alloc(0))
  return {
    kind: x509 as unknown as Kind,
    backend,
    scopes: ['worker'],
    logged,
    probe: {
      async use(issued: Issued) {
        const certificate = new X509Certificate(String(issued.fields?.['certificate']))
        const key = createPrivateKey(String(issued.fields?.['private_key']))
        const answer = await server.request(issued)
        return (
          certificate.checkPrivateKey(key) && answer.verify === 'SUCCESS' && answer.subject === 'CN=worker'
        )
      },
      expiresAt: async (issued: Issued) =>
        Date.parse(new X509Certificate(String(issued.fields?.['certificate'])).validTo),
    },
    async close() {
      await backend[Symbol.asyncDispose]()
      await server.stop()
    },
  }
})
