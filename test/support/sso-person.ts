import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Reply, startApp, type TestApp } from './app.ts'
import { callAsPage } from './person.ts'
import { type SsoServer, startSsoServer } from './sso-server.ts'

/** The cookie of this name that a reply sets, as `name=value`; empty if it deletes it. */
export function setCookie(reply: Reply, name: string): string | undefined {
  const found = reply.headers
    .get('set-cookie')
    ?.split(/,(?=\w*(?:__Host-)?mayfly)/)
    .find((line) => line.startsWith(`${name}=`))
  return found?.split(';')[0]
}
const STATE = 'mayfly-sso-state'
export const stateOf = (reply: Reply) => setCookie(reply, STATE) ?? ''
export const NAME = 'Example SSO'
export const OTHER = 'Other SSO'

/** A server with two providers that both know Alice, who administers everything. */
export interface SsoWorld {
  readonly directory: string
  readonly provider: SsoServer
  /** Its claims are in the userinfo reply, and it takes the secret in the body. */
  readonly other: SsoServer
  readonly app: TestApp
  /** Another server with the same providers. */
  node(options: Parameters<typeof startApp>[0]): Promise<TestApp>
  close(): Promise<void>
}

const AUDIT = { scopes: ['admin:audit:read'] }
const GROUPS = [
  { group: 'admins', scopes: ['admin:*'], backend_scopes: ['*'] },
  { group: 'Auditors', ...AUDIT },
  { group: 'group-299', ...AUDIT, backend_scopes: ['orders'] },
  { group: 'readers', scopes: ['admin:agents:read'] },
]

export async function startSsoWorld(options: Parameters<typeof startApp>[0] = {}): Promise<SsoWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'mayfly-sso-'))
  const provider = await startSsoServer()
  const other = await startSsoServer({ userinfo: true, auth: 'client_secret_post' })
  const alice = { name: 'Alice', email: 'Alice@Example.com', email_verified: true, groups: ['admins'] }
  for (const server of [provider, other]) server.people.set('alice', alice)
  const entries = [
    await provider.entry(directory, { groups: GROUPS }),
    await other.entry(directory, { name: OTHER, groups: GROUPS }),
  ]
  const app = await startSsoApp(entries, options)
  return {
    directory,
    provider,
    other,
    app,
    node: (more) => startSsoApp(entries, more),
    async close() {
      await app.close()
      await provider.close()
      await other.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

export const startSsoApp = (
  entries: readonly Record<string, unknown>[],
  options: Parameters<typeof startApp>[0] = {},
) => startApp({ yaml: JSON.stringify({ sso: entries }), ...options })

export async function begin(app: TestApp, provider = NAME): Promise<{ url: string; cookie: string }> {
  const reply = await callAsPage(app, 'POST', '/v1/console/login/sso', { provider })
  if (reply.status !== 200) throw new Error(`the login does not begin: ${reply.text}`)
  return { url: reply.body.url, cookie: stateOf(reply) }
}

export const finish = (app: TestApp, parameters: string, cookie: string): Promise<Reply> =>
  callAsPage(app, 'POST', '/v1/console/login/sso/finish', { parameters }, { cookie })

/** Begins, logs in at the provider as `user`, and finishes. */
export async function attempt(
  app: TestApp,
  server: SsoServer,
  user: string,
  provider = NAME,
): Promise<Reply> {
  server.user = user
  const { url, cookie } = await begin(app, provider)
  return finish(app, await server.logIn(url), cookie)
}

export interface SsoPerson {
  readonly reply: Reply
  readonly headers: Readonly<Record<string, string>>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
}

export async function logIn(
  app: TestApp,
  server: SsoServer,
  user: string,
  provider = NAME,
): Promise<SsoPerson> {
  const reply = await attempt(app, server, user, provider)
  if (reply.status !== 200) throw new Error(`the login failed: ${reply.text}`)
  const cookie = setCookie(reply, '__Host-mayfly') ?? ''
  const own = { cookie, 'mayfly-console': reply.body.key }
  return {
    reply,
    headers: own,
    call: (method, path, body, headers = {}) => callAsPage(app, method, path, body, { ...own, ...headers }),
  }
}

/** What the page sends once the person has logged in again. */
export const confirmationOf = (challenge: string) => ({
  'mayfly-confirmation': Buffer.from(JSON.stringify({ sso: { challenge } })).toString('base64url'),
})
