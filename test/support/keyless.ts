import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import type { AgentTemplate, Identity } from '../../src/domain/identity/identity.ts'
import { parseTemplate } from '../../src/domain/identity/template.ts'
import { startApp, type TestApp } from './app.ts'
import { equal, identity, inline, newSigner, type Signer, times } from './identity-tokens.ts'
import { AUDIENCE } from './preset-tokens.ts'

export const ISSUER = 'https://issuer.test'
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt'

/** The signer of all tokens of a test: its key stands in the entries. */
export const signer: Signer = newSigner('ES256')

export const template = (text: string): AgentTemplate => parseTemplate(text)

/** An entry for the issuer of this file. */
export const entry = (name: string, more: Partial<Identity> = {}): Identity =>
  identity(name, { keys: inline(signer), agent: template(name), ...more })

/** A token that nobody has presented yet, of the issuer of this file unless `claims` and `by` say otherwise. */
export function workload(
  app: Pick<TestApp, 'core'>,
  claims: Readonly<Record<string, unknown>> = {},
  lifeSeconds = 300,
  by: Signer = signer,
): string {
  const now = app.core.store.now()
  return by.sign({
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'job',
    jti: randomUUID(),
    ...times(now, lifeSeconds),
    ...claims,
  })
}

export interface LoginReply {
  readonly status: number
  readonly headers: Headers
  readonly body: {
    access_token: string
    token_type: string
    expires_in: number
    scope: string
    issued_token_type?: string
    id_token?: string
    error?: string
    error_description?: string
    error_uri?: string
  }
}

export async function post(
  app: Pick<TestApp, 'url'>,
  form: Readonly<Record<string, string>>,
): Promise<LoginReply> {
  const reply = await fetch(`${app.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { status: reply.status, headers: reply.headers, body: (await reply.json()) as LoginReply['body'] }
}

export const exchange = (
  app: Pick<TestApp, 'url'>,
  token: string,
  more: Readonly<Record<string, string>> = {},
): Promise<LoginReply> =>
  post(app, { grant_type: TOKEN_EXCHANGE, subject_token: token, subject_token_type: JWT_TYPE, ...more })

export const bear = (
  app: Pick<TestApp, 'url'>,
  token: string,
  more: Readonly<Record<string, string>> = {},
): Promise<LoginReply> => post(app, { grant_type: JWT_BEARER, assertion: token, ...more })

export interface Recorded {
  action: string
  outcome: string
  actor: string
  auth_method: string | null
  agent_name: string | null
  details: Record<string, unknown> | null
}

/** One entry for each way, told apart by their audiences. */
const ENTRIES = [
  entry('runs', {
    agent: template('ci-{run_id}'),
    subject: equal('job'),
    scopes: ['orders:read'],
    maxTtlMs: 120_000,
  }),
  entry('fixed', { audience: 'fixed', scopes: ['orders'], tokenTtlMs: 1_800_000 }),
  entry('each', { audience: 'each', concurrent: 'suffix', scopes: ['orders'] }),
  entry('trial', { audience: 'trial', mode: 'observe', scopes: ['orders'] }),
  entry('short', { audience: 'short', agentTtlMs: 5_000, once: false }),
]

/** A server with these entries and the backend `orders`, for a file. */
export function useKeyless(dialect: 'sqlite' | 'postgres') {
  let app: TestApp | undefined
  const started = () => {
    if (app === undefined) throw new Error('the server has not started')
    return app
  }
  beforeAll(async () => {
    app = await startApp({ dialect })
    await app.newBackend({ name: 'orders' })
    app.core.identities.setTrusted({ identities: ENTRIES, platforms: [] })
  })
  afterAll(() => started().close())
  let runs = 0
  return {
    app: started,
    /** One that no test has had. */
    runId: () => {
      runs += 1
      return `${runs}`
    },
    /** Newest first. */
    audit: async (query: string): Promise<Recorded[]> =>
      (await started().local.get(`/v1/admin/audit?${query}&limit=50`)).body,
    agentNamed: async (name: string) => (await started().local.get(`/v1/admin/agents/${name}`)).body,
  }
}
