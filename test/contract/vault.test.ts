import { afterAll, beforeAll } from 'vitest'
import type { Handle, Issued, Kind } from '../../src/backends/kind.ts'
import type { SecretConfig, TokenConfig } from '../../src/backends/vault/config.ts'
import { vault, vaultSecret } from '../../src/backends/vault/kind.ts'
import { type FakeVault, startFakeVault } from '../support/fakes/vault.ts'
import { documentedPolicy } from '../support/fakes/vault-policy.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

let server: FakeVault
beforeAll(async () => {
  server = await startFakeVault()
  server.writePolicy('mayfly', await documentedPolicy('vault.md'))
  server.writePolicy('mayfly-secrets', await documentedPolicy('vault-secret.md'))
  server.writePolicy('orders-read', 'path "kv/orders" { capabilities = ["read"] }')
})
afterAll(() => server.close())

function shared(policy: string) {
  const { roleId, secretId } = server.newAppRole([policy, 'orders-read'])
  return { address: server.address, auth: 'approle' as const, role: roleId, secret_id: secretId, local: true }
}

const isAlive = ({ role }: Handle) =>
  server.roles.has(String(role)) ||
  [...server.tokens.values()].some(({ path }) => path === `auth/token/create/${role}`)

describeKind('vault', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('vault')
  const settings: TokenConfig = { ...shared('mayfly'), policies: ['orders-read'] }
  const backend = await vault.open(settings, host)
  return {
    kind: vault as unknown as Kind,
    config: settings,
    backend,
    scopes: ['orders-read'],
    logged,
    unreachable: () => vault.open({ ...settings, address: 'http://127.0.0.1:1' }, host),
    hostile: (address) => vault.open({ ...settings, address }, host),
    probe: {
      exists: async (handle) => isAlive(handle),
      async use({ fields }: Issued) {
        const headers = { 'x-vault-token': String(fields?.['token']), 'x-vault-request': 'true' }
        const read = async (path: string) =>
          (await fetch(`${fields?.['address']}/v1/${path}`, { headers })).status
        return (await read('kv/orders')) === 200 && (await read('kv/other')) === 403
      },
      async expiresAt({ fields, upstreamExpiresAt = 0 }: Issued) {
        const actual = server.tokens.get(String(fields?.['token']))?.expiresAt ?? 0
        // It counts from its own clock, a moment after ours.
        return Math.abs(actual - upstreamExpiresAt) < 1_000 ? upstreamExpiresAt : actual
      },
    },
    close: async () => backend[Symbol.asyncDispose](),
  }
})

describeKind('vault-secret', async (): Promise<OpenKind> => {
  const { host, logged } = createTestHost('vault')
  const settings: SecretConfig = {
    ...shared('mayfly-secrets'),
    secrets: ['orders:read=database/creds/orders-read'],
  }
  const backend = await vaultSecret.open(settings, host)
  const hasUser = (name: unknown) => [...server.leases.values()].some(({ username }) => username === name)
  return {
    kind: vaultSecret as unknown as Kind,
    backend,
    scopes: ['orders:read'],
    logged,
    unreachable: () => vaultSecret.open({ ...settings, address: 'http://127.0.0.1:1' }, host),
    hostile: (address) => vaultSecret.open({ ...settings, address }, host),
    probe: {
      exists: async (handle) => isAlive(handle) || server.leases.has(String(handle['lease'])),
      use: async ({ fields }) => hasUser(fields?.['username']),
    },
    close: async () => backend[Symbol.asyncDispose](),
  }
})
