import Value from 'typebox/value'
import { afterAll, beforeAll } from 'vitest'
import type { Handle, Issued, Kind } from '../../src/backends/kind.ts'
import { type Config, config, revocableConfig } from '../../src/backends/oauth2/config.ts'
import { oauth2, oauth2Revocable } from '../../src/backends/oauth2/kind.ts'
import { createEgressFetch } from '../../src/egress/fetch.ts'
import { createResolver } from '../../src/egress/resolver.ts'
import { createTestHost } from '../support/host.ts'
import { type OidcServer, startOidcServer } from '../support/oidc-server.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

let server: OidcServer
beforeAll(async () => {
  server = await startOidcServer()
})
afterAll(() => server.close())

const SCOPES = ['orders:read', 'orders:write']

describeKind('oauth2, client_credentials', () => openOn(oauth2 as unknown as Kind, 'client_credentials'))
describeKind('oauth2, refresh_token', () => openOn(oauth2 as unknown as Kind, 'refresh_token'))
describeKind('oauth2-revocable', () => openOn(oauth2Revocable as unknown as Kind, 'client_credentials'))

/** A request that uses a refresh token is never cut short, so that closing waits for it. Long for one that is answered. */
const HOSTILE_MS = 4_000

async function openOn(kind: Kind, grant: Config['grant']): Promise<OpenKind> {
  const { host, logged } = createTestHost('api')
  const revocable = kind.revocation === 'exact'
  const given = {
    token_endpoint: server.tokenEndpoint,
    ...(revocable ? { revocation_endpoint: server.revocationEndpoint } : {}),
    grant,
    client_id: 'basic',
    client_secret: server.secret,
    scopes: SCOPES,
    local: true,
    ...(grant === 'refresh_token' ? { refresh_token: await server.signIn() } : {}),
  }
  const settings = Value.Default(revocable ? revocableConfig : config, given) as Config
  const impatient = {
    ...host,
    timeoutMs: HOSTILE_MS,
    fetch: createEgressFetch({
      local: true,
      timeoutMs: HOSTILE_MS,
      lookup: createResolver().addresses,
      checkListener: host.checkListener,
    }),
  }
  const at = (url: string) => {
    const elsewhere = { token_endpoint: `${url}/token`, revocation_endpoint: `${url}/revoke` }
    if (!revocable) Reflect.deleteProperty(elsewhere, 'revocation_endpoint')
    return kind.open({ ...settings, ...elsewhere }, impatient)
  }
  const backend = await kind.open(settings, host)
  return {
    kind,
    backend,
    scopes: SCOPES,
    logged,
    probe: {
      exists: async ({ token }: Handle) => (await server.introspect(String(token))).active,
      async use({ secret = '' }: Issued) {
        const { active, scope } = await server.introspect(secret)
        return active && scope === SCOPES.join(' ')
      },
    },
    unreachable: () => at('http://127.0.0.1:1'),
    hostile: at,
    close: async () => backend[Symbol.asyncDispose](),
  }
}
