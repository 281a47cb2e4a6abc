import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from './app.ts'
import { newSigner, type Signer, signPreset } from './identity-tokens.ts'
import { AUDIENCE, type PresetName, presetToken } from './preset-tokens.ts'

export const GITHUB = presetToken('github').issuer ?? ''
const GITLAB = presetToken('gitlab').issuer ?? ''
/** An instance of GitLab for each customer of a host. */
export const TENANTS = 'gitlab.tenants.test'

/** Its keys cannot be had. */
export const AWAY = 'https://away.test'

export const signers = {
  github: newSigner('RS256'),
  gitlab: newSigner('RS256'),
  tenants: newSigner('RS256'),
  kubernetes: newSigner('RS256'),
  spiffe: newSigner('ES256'),
  google: newSigner('RS256'),
  aws: newSigner('ES384'),
  other: newSigner('RS256'),
}
const keys = (name: keyof typeof signers) => ({ jwks: { keys: [signers[name].jwk] } })

/** The preset for GitHub pins numbers and events, and parses no `sub`. */
const ENTRIES = [
  {
    name: 'github',
    issuer: GITHUB,
    audience: AUDIENCE,
    subject_pattern: '.+',
    claims: {
      repository_id: '74',
      repository_owner_id: '65',
      environment: 'prod',
      event_name: { pattern: 'push|release|schedule|workflow_dispatch' },
    },
    agent: 'ci-{run_id}',
    scopes: ['demo'],
    ...keys('github'),
  },
  {
    name: 'gitlab',
    issuer: GITLAB,
    audience: AUDIENCE,
    subject_pattern: 'project_path:my-group/my-project:ref_type:branch:ref:[a-z0-9-]+',
    claims: { project_id: '20', ref_protected: 'true' },
    agent: 'gitlab',
    scopes: ['demo'],
    ...keys('gitlab'),
  },
  {
    name: 'tenants',
    issuer_pattern: `https://gitlab\\.tenants\\.test/[a-z]+`,
    audience: AUDIENCE,
    subject: 'project_path:acme/app:ref_type:branch:ref:main',
    claims: { project_id: '20' },
    agent: 'tenants',
    scopes: ['demo'],
    ...keys('tenants'),
  },
  {
    name: 'pods',
    issuer: presetToken('kubernetes').issuer,
    audience: AUDIENCE,
    subject: 'system:serviceaccount:my-namespace:my-serviceaccount',
    claims: {
      'kubernetes.io/namespace': 'my-namespace',
      'kubernetes.io/serviceaccount/uid': '14ee3fa4-a7e2-420f-9f9a-dbc4507c3798',
    },
    agent: 'pods',
    scopes: ['demo'],
    ...keys('kubernetes'),
  },
  {
    name: 'svids',
    trust_domain: 'example.org',
    audience: AUDIENCE,
    subject: 'spiffe://example.org/ns/agents/sa/worker',
    agent: 'svids',
    scopes: ['demo'],
    ...keys('spiffe'),
  },
  {
    name: 'machines',
    issuer: presetToken('google').issuer,
    audience: AUDIENCE,
    subject_pattern: '[0-9]+',
    claims: { 'google/compute_engine/project_number': '739419398126' },
    agent: 'machine-{google/compute_engine/instance_id}',
    scopes: ['demo'],
    ...keys('google'),
  },
  {
    name: 'roles',
    issuer: presetToken('aws').issuer,
    audience: AUDIENCE,
    subject: 'arn:aws:iam::123456789012:role/DataProcessingRole',
    agent: 'roles',
    scopes: ['demo'],
    ...keys('aws'),
  },
  {
    name: 'away',
    issuer: AWAY,
    audience: AUDIENCE,
    subject: 'job',
    agent: 'away',
    scopes: ['demo'],
    // Nobody listens there.
    jwks_uri: 'http://127.0.0.1:1/jwks',
    local: true,
  },
]

let app: TestApp
/** A server with these entries, for a file. */
export function useAttackedServer(): () => TestApp {
  beforeAll(async () => {
    app = await startApp({ yaml: JSON.stringify({ identities: ENTRIES }) })
  })
  afterAll(() => app.close())
  return () => app
}

export type Json = Readonly<Record<string, unknown>>
export const now = () => app.core.store.now()
/** What the platform would sign, with other claims, and with its own key unless another one signs. */
export const of =
  (name: PresetName, claims: Json = {}, header: Json = {}, signer?: Signer) =>
  (): string => {
    const known = signers[name as keyof typeof signers] ?? signers.other
    return signPreset(name, signer ?? known, {
      now: now(),
      header,
      claims: { jti: randomUUID(), ...(name === 'gitlab' ? { ref_protected: 'true' } : {}), ...claims },
    })
  }

export async function present(token: string): Promise<{ status: number; text: string }> {
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }
  const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { status: reply.status, text: await reply.text() }
}

const REPLY = {
  error: 'invalid_grant',
  error_description: expect.stringMatching(/^No entry of 'identities' or 'platforms' accepts this token\./),
  error_uri: 'https://mayfly.test/console/activity?action=token.refused',
}

/** Floods of refusals are held up, and summarised once a minute. */
export const waitAMinute = () => app.advance(61_000)

/** The reason and the detail, as the audit has them. */
export async function refusal(token: string): Promise<[reason: unknown, detail: unknown]> {
  const { status, text } = await present(token)
  expect(JSON.parse(text)).toEqual(REPLY)
  expect(status).toBe(400)
  await app.core.denials.flush(Number.POSITIVE_INFINITY)
  const [entry] = (await app.local.get('/v1/admin/audit?action=token.refused&limit=1')).body
  expect(entry).toMatchObject({ outcome: 'denied', details: { code: 'invalid_grant' } })
  return [entry.details.reason, entry.details.detail]
}

export type Attack = readonly [name: string, make: () => string, reason: string, detail?: string]

/** Made when the test runs: by the clock of the server. */
export function refuses(attacks: readonly Attack[]): void {
  test.each(attacks.map((attack) => [attack[0], attack] as const))('%s', async (_, attack) => {
    const [, make, reason, detail] = attack
    waitAMinute()
    expect(await refusal(make())).toEqual([
      reason,
      detail === undefined ? expect.anything() : detail || undefined,
    ])
  })
}

/** At an issuer of its own under the pattern. */
export function tenant(claims: Json = {}): Json {
  return { iss: `https://${TENANTS}/acme`, sub: 'project_path:acme/app:ref_type:branch:ref:main', ...claims }
}
