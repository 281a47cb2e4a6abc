import { decodeJwt } from 'jose'
import type { Issued, Kind } from '../../src/backends/kind.ts'
import { type Config, registry } from '../../src/backends/registry/kind.ts'
import { createDockerRegistry } from '../support/docker-registry.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('registry', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('images')
  const server = await createDockerRegistry()
  const base: Config = { address: `http://${server.host}`, leeway: 60, local: true }
  const settings = (await registry.complete?.(base)) ?? base
  await server.start({ issuer: host.issuer, certificate: settings.certificate ?? '' })
  const backend = await registry.open(settings, host)
  return {
    kind: registry as unknown as Kind,
    config: settings,
    backend,
    scopes: ['team/app:push'],
    logged,
    probe: {
      async use({ fields }: Issued) {
        const authorization = `Bearer ${fields?.['token']}`
        const begin = async (repository: string) => {
          const url = `http://${server.host}/v2/${repository}/blobs/uploads/`
          return (await fetch(url, { method: 'POST', headers: { authorization } })).status
        }
        return (await begin('team/app')) === 202 && (await begin('team/other')) === 401
      },
      async expiresAt({ fields }: Issued) {
        return ((decodeJwt(String(fields?.['token'])).exp ?? 0) + settings.leeway) * 1_000
      },
    },
    async close() {
      await backend[Symbol.asyncDispose]()
      await server.close()
    },
  }
})
