import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, jwtVerify } from 'jose'
import { jwt } from '../../src/backends/jwt/kind.ts'
import type { Issued, Kind } from '../../src/backends/kind.ts'
import { createTestHost } from '../support/host.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
  describeKind(`jwt, ${algorithm}`, async (): Promise<OpenKind> => {
    const { host, logged } = createTestHost('tokens')
    const base = { audience: 'https://api.test', algorithm, subject: 'agent_id' as const }
    const settings = (await jwt.complete?.(base)) ?? base
    const backend = await jwt.open(settings, host)
    const keys = createLocalJWKSet({ keys: backend.publicKeys?.() } as unknown as JSONWebKeySet)
    return {
      kind: jwt as unknown as Kind,
      backend,
      scopes: ['orders:read', 'orders:write'],
      logged,
      probe: {
        async use(issued: Issued) {
          const { payload } = await jwtVerify(issued.secret ?? '', keys, {
            issuer: host.issuer,
            audience: 'https://api.test',
            algorithms: [algorithm],
            typ: 'at+jwt',
            requiredClaims: ['sub', 'jti', 'iat', 'exp', 'client_id'],
          })
          return payload['scope'] === 'orders:read orders:write'
        },
        async expiresAt(issued: Issued) {
          return (decodeJwt(issued.secret ?? '').exp ?? 0) * 1000
        },
      },
      async close() {
        await backend[Symbol.asyncDispose]()
      },
    }
  })
}
