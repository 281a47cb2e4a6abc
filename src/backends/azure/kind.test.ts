import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  ClientAssertionCredential,
  ClientCertificateCredential,
  ClientSecretCredential,
} from '@azure/identity'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { never, newRequest } from '../../../test/contract/open-kind.ts'
import { makeCertificates } from '../../../test/support/certificates.ts'
import { startEntra } from '../../../test/support/fakes/azure.ts'
import { startIssuer } from '../../../test/support/fakes/issuer.ts'
import { createTestHost } from '../../../test/support/host.ts'
import { makeRsaCertificate } from '../../../test/support/rsa-certificate.ts'
import { readConfig } from '../config-fields.ts'
import type { Backend, Host, IssueRequest } from '../kind.ts'
import type { Config } from './config.ts'
import { azure } from './kind.ts'

const pair = makeRsaCertificate('mayfly')
let issuer: Awaited<ReturnType<typeof startIssuer>>
let fake: Awaited<ReturnType<typeof startEntra>>
let host: Host
let settings: Config
beforeAll(async () => {
  issuer = await startIssuer()
  fake = await startEntra(issuer.url, pair.certificate)
  host = issuer.trust(createTestHost('cloud').host)
  settings = {
    tenant_id: fake.tenant,
    client_id: fake.client,
    audience: 'api://AzureADTokenExchange',
    resources: ['management.azure.com', 'vault.azure.net', 'api/orders'],
    authority: fake.url,
    local: true,
  }
})
afterAll(async () => {
  await fake[Symbol.asyncDispose]()
  await issuer[Symbol.asyncDispose]()
})

const open = (more: Partial<Config> = {}, on = host): Promise<Backend<object>> =>
  azure.open({ ...settings, ...more }, on)
const asking = (scopes: string[]) => newRequest(scopes) as IssueRequest<object>

describe('a token', () => {
  it.each([
    ['management.azure.com', 'https://management.azure.com'],
    ['vault*', 'https://vault.azure.net'],
    ['api/orders', 'api://orders'],
  ])('of the scope %s is for %s alone', async (scope, resource) => {
    await using backend = await open()
    const { secret, upstreamExpiresAt = 0 } = await backend.issue(asking([scope]), never())
    expect(fake.tokens.get(String(secret))).toBe(resource)
    expect(upstreamExpiresAt).toBeGreaterThan(Date.now() + 3_800_000)
  })

  it.each([[[]], [['*']], [['management.azure.com', 'api/orders']], [['graph.microsoft.com']]])(
    'is refused for %j',
    async (scopes) => {
      await using backend = await open()
      const before = fake.seen.length
      await expect(backend.issue(asking(scopes), never())).rejects.toMatchObject({ fault: 'unsupported' })
      expect(fake.seen.length).toBe(before)
    },
  )
})

it.each([
  ['analysis.windows.net/powerbi/api', 'https://analysis.windows.net/powerbi/api'],
  ['2ff814a6-3304-4ab8-85cb-cd0e6f879c1d', '2ff814a6-3304-4ab8-85cb-cd0e6f879c1d'],
])('the resource %s is one that a configuration and a scope can name', async (name, resource) => {
  const { config, faults } = readConfig(azure.config, { ...settings, resources: [name] })
  expect(faults).toEqual([])
  expect(azure.scopes.valid(name)).toBe(true)
  await using backend = await azure.open(config as Config, host)
  const { secret } = await backend.issue(asking([name]), never())
  expect(fake.tokens.get(String(secret))).toBe(resource)
})

describe('the check', () => {
  const check = async (more: Partial<Config> = {}, on = host) => {
    await using backend = await open(more, on)
    return backend.check(never())
  }
  const certified = { certificate: pair.certificate, private_key: pair.key }
  it('passes with each login', async () => {
    expect(await check()).toEqual([])
    expect(await check({ client_secret: fake.secret })).toEqual([])
    expect(await check(certified)).toEqual([])
  })

  it('says what is missing', async () => {
    await expect(check({ client_secret: 'wrong' })).rejects.toThrow('"client_secret"')
    await expect(check({ audience: 'other' })).rejects.toThrow('federated credential')
    await expect(check({}, { ...host, name: 'other' })).rejects.toThrow('federated credential')
    const other = makeRsaCertificate('other')
    await expect(check({ certificate: other.certificate, private_key: other.key })).rejects.toThrow(
      'this certificate',
    )
    await expect(check({ client_id: fake.tenant })).rejects.toThrow('"client_id"')
    await expect(check({ tenant_id: fake.client })).rejects.toThrow('"tenant_id"')
    await expect(check({ resources: ['graph.microsoft.com'] })).rejects.toThrow('does not know the resource')
    await expect(check({ authority: 'http://127.0.0.1:1' })).rejects.toMatchObject({ fault: 'unavailable' })
  })

  it('refuses a configuration that cannot work', async () => {
    await expect(check({ ...certified, private_key: fake.stranger })).rejects.toThrow('"private_key"')
    await expect(check({ certificate: pair.certificate })).rejects.toThrow('needs "private_key"')
    await expect(check({ ...certified, client_secret: 'x' })).rejects.toThrow('not both')
    await expect(check({ local: false })).rejects.toThrow('"authority"')
  })
})

it("Microsoft's own library logs in with the same secret, certificate and id token", async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mayfly-azure-'))
  const { server: tls, ca } = makeCertificates(directory)
  await using entra = await startEntra(issuer.url, pair.certificate, tls)
  const how = {
    authorityHost: entra.url,
    disableInstanceDiscovery: true,
    tlsOptions: { ca: readFileSync(ca, 'utf8') },
    retryOptions: { maxRetries: 0 },
  }
  const { tenant, client } = entra
  const idToken = () =>
    host.idToken({
      audience: 'api://AzureADTokenExchange',
      subject: 'backend/cloud',
      expiresAt: Date.now() + 60_000,
    })
  const credentials = [
    new ClientSecretCredential(tenant, client, entra.secret, how),
    new ClientCertificateCredential(tenant, client, { certificate: pair.certificate + pair.key }, how),
    new ClientAssertionCredential(tenant, client, idToken, how),
  ]
  for (const credential of credentials) {
    const { token } = await credential.getToken('https://vault.azure.net/.default')
    expect(entra.tokens.get(token)).toBe('https://vault.azure.net')
  }
  await rm(directory, { recursive: true })
})

it.each(['vault.azure.net:read', '/x', 'https://x', '-x'])('does not understand the scope %s', (scope) =>
  expect(azure.scopes.valid(scope)).toBe(false),
)
