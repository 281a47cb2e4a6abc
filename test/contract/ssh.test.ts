import type { Issued, Kind } from '../../src/backends/kind.ts'
import { ssh } from '../../src/backends/ssh/kind.ts'
import { createTestHost } from '../support/host.ts'
import { validBefore } from '../support/ssh-certificate.ts'
import { startSshServer } from '../support/ssh-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('ssh', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('servers')
  const settings = await ssh.complete?.({ principals: ['deploy', 'backup'], extensions: [] })
  if (settings === undefined) throw new Error('ssh completes its configuration')
  const backend = await ssh.open(settings, host)
  const empty = await backend.revocationList?.([])
  const server = await startSshServer(
    settings.ca_public_key ?? '',
    ['deploy'],
    empty?.body ?? Buffer.alloc(0),
  )
  return {
    kind: ssh as unknown as Kind,
    backend,
    scopes: ['deploy'],
    logged,
    probe: {
      use: async (issued: Issued) => (await server.login(issued, 'echo in')) === 'in',
      expiresAt: async (issued: Issued) => validBefore(String(issued.fields?.['certificate'])),
    },
    async close() {
      await backend[Symbol.asyncDispose]()
      await server.stop()
    },
  }
})
