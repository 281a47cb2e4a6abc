import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BACKEND } from './server.ts'

const ISSUER = 'https://issuer.example'
const PLATFORM_ISSUER = 'https://agents.example'
const AUDIENCE = 'https://mayfly.example'
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Writes a configuration that trusts the bench: as `jobs`, of which each is an agent, and as the platform `platform`. */
export function writeKeylessConfig(directory: string): string {
  const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'bench', alg: 'ES256' }] }
  const common = { audience: AUDIENCE, jwks }
  const scopes = [`${BACKEND}:*`]
  const job = { name: 'jobs', issuer: ISSUER, subject: 'job', agent: 'job-{run_id}', scopes, agent_ttl: '1h' }
  const config = {
    identities: [{ ...common, ...job }],
    platforms: [{ ...common, name: 'platform', issuer: PLATFORM_ISSUER }],
  }
  const path = join(directory, 'keyless.yaml')
  writeFileSync(path, JSON.stringify(config))
  return path
}

/** A token of a job that nobody has seen. */
export const newJob = (): string => token({ iss: ISSUER, sub: 'job', run_id: randomUUID() })

/** A token of an agent of the platform that nobody has seen. */
export const newPlatformAgent = (): string => token({ iss: PLATFORM_ISSUER, sub: randomUUID() })

function token(claims: object): string {
  const iat = Math.floor(Date.now() / 1_000)
  const all = { aud: AUDIENCE, jti: randomUUID(), iat, exp: iat + 300, ...claims }
  const body = `${encoded({ typ: 'JWT', alg: 'ES256', kid: 'bench' })}.${encoded(all)}`
  const signature = sign('sha256', Buffer.from(body), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${body}.${signature.toString('base64url')}`
}

/** The form of a log-in. */
export const loginForm = (assertion: string) => ({
  grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
  assertion,
})
