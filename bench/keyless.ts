import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newSigner, type Signer, times } from '../test/support/identity-tokens.ts'
import { temporaryDirectory } from './processes.ts'
import type { Ask } from './request.ts'
import type { Bench } from './scenario.ts'
import { BACKEND } from './server.ts'

const ISSUER = 'https://issuer.example'
const PLATFORM_ISSUER = 'https://agents.example'
const AUDIENCE = 'https://mayfly.example'
const signer = newSigner('ES256')

/** What each entry says of its issuer: who it is, and that its key is this one. */
export const issuedBy = (issuer: string, { jwk }: Signer) => ({
  issuer,
  audience: AUDIENCE,
  jwks: { keys: [jwk] },
})

/** The environment of a server with these settings: JSON is YAML. */
export function withConfig(bench: Bench, settings: object): { MAYFLY_CONFIG: string } {
  const file = join(temporaryDirectory(bench.directory), 'mayfly.yaml')
  writeFileSync(file, JSON.stringify(settings))
  return { MAYFLY_CONFIG: file }
}

/** Trusts the bench: as `jobs`, of which each is an agent, and as the platform `platform`. */
export const JOBS_AND_PLATFORM = {
  identities: [
    {
      ...issuedBy(ISSUER, signer),
      name: 'jobs',
      subject: 'job',
      agent: 'job-{run_id}',
      scopes: [`${BACKEND}:*`],
      agent_ttl: '1h',
    },
  ],
  platforms: [{ ...issuedBy(PLATFORM_ISSUER, signer), name: 'platform' }],
}

/** A token of a job that nobody has seen. */
export const newJob = (): string => newToken(signer, { iss: ISSUER, sub: 'job', run_id: randomUUID() })

/** A token of an agent of the platform that nobody has seen. */
export const newPlatformAgent = (): string => newToken(signer, { iss: PLATFORM_ISSUER, sub: randomUUID() })

/** A token that nobody has seen, for this server. */
export const newToken = (by: Signer, claims: Readonly<Record<string, unknown>>): string =>
  by.sign({ aud: AUDIENCE, jti: randomUUID(), ...times(Date.now()), ...claims })

/** A login by this token (RFC 7523 §2.1). */
export const logIn = (token: string): Ask => ({
  method: 'POST',
  path: '/oauth/token',
  form: { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: token },
})
