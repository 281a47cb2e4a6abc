import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Host } from '../../../src/backends/kind.ts'
import { BackendError } from '../../../src/domain/backend-error.ts'
import { startFake } from './fake-server.ts'

/** Mayfly as an OpenID provider: publishes its keys, and gives a host that signs with them. */
export async function startIssuer() {
  const { publicKey, privateKey } = await generateKeyPair('RS256')
  const key = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }
  const server = await startFake(({ line }) => {
    if (line === 'GET /.well-known/openid-configuration') {
      return { status: 200, body: { issuer: server.url, jwks_uri: `${server.url}/.well-known/jwks.json` } }
    }
    if (line === 'GET /.well-known/jwks.json') return { status: 200, body: { keys: [key] } }
    return { status: 404 }
  })
  const idToken: Host['idToken'] = ({ audience, subject, expiresAt, claims }) => {
    if (expiresAt > Date.now() + 43_200_500)
      throw new BackendError('misconfigured', 'longer than twelve hours')
    return new SignJWT({ ...claims, jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1', typ: 'JWT' })
      .setIssuer(server.url)
      .setAudience(audience)
      .setSubject(subject)
      .setIssuedAt()
      .setNotBefore('0s')
      .setExpirationTime(Math.floor(expiresAt / 1000))
      .sign(privateKey)
  }
  const trust = (host: Host): Host => ({ ...host, issuerUrl: server.url, idToken })
  return { ...server, trust }
}
