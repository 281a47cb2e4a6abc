import { relyingPartyOf } from '../../src/domain/people/relying-party.ts'
import type { Reply, TestApp } from './app.ts'
import { type Authenticator, confirmationHeader, createAuthenticator } from './authenticator.ts'

/** What the page of the console sends: the cookie, its key, and what browsers add. */
export interface Person {
  readonly email: string
  readonly id: string
  readonly cookie: string
  readonly key: string
  readonly authenticator: Authenticator
  headers(): Record<string, string>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** As `call`; what the server asks to confirm, the passkey confirms. */
  act(method: string, path: string, body?: unknown): Promise<Reply>
  /** Registers the passkey of this person. */
  register(name?: string): Promise<Reply>
}

export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }
export const linkOf = (url: string) => /#link=(mfl_[0-9a-f]{64})$/.exec(url)?.[1] ?? ''
export const cookieOf = (reply: Reply) => (reply.headers.get('set-cookie') ?? '').split(';')[0] ?? ''

/** Sends as a page of the server itself does. */
export async function callAsPage(
  app: TestApp,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await app.raw({
    method,
    path,
    headers: {
      host: new URL(app.url).host,
      ...SAME_ORIGIN,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const fields = Object.entries(reply.headers).map(([name, value]): [string, string] => [name, String(value)])
  const text = reply.text
  return {
    status: reply.status,
    headers: new Headers(fields),
    text,
    body: text === '' ? undefined : parse(text),
  }
}

function parse(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Makes an operator, logs them in by the invitation, and registers a passkey. */
export async function newPerson(
  app: TestApp,
  settings: { email?: string; scopes?: string[]; backend_scopes?: string[]; passkey?: boolean } = {},
): Promise<Person> {
  count += 1
  const { passkey = true, ...operator } = settings
  const invited = await app.local.post('/v1/admin/operators', {
    email: `person-${count}@example.com`,
    scopes: ['admin:*'],
    backend_scopes: ['*'],
    ...operator,
  })
  if (invited.status !== 200) throw new Error(`inviting failed: ${invited.text}`)
  const person = await enter(app, linkOf(invited.body.invitation.url), invited.body)
  if (passkey) {
    const reply = await person.register()
    if (reply.status !== 200) throw new Error(`registering failed: ${reply.text}`)
  }
  return person
}
let count = 0

/** Logs in by a link. */
export async function enter(
  app: TestApp,
  link: string,
  who: { id: string; email: string },
  authenticator?: Authenticator,
): Promise<Person> {
  const reply = await callAsPage(app, 'POST', '/v1/console/login/link', { link })
  if (reply.status !== 200) throw new Error(`the login failed: ${reply.text}`)
  return personOf(app, who, reply, authenticator)
}

/** Logs the person in once more, by passkey. */
export async function logInAgain(app: TestApp, person: Person): Promise<Person> {
  const { options } = (await callAsPage(app, 'POST', '/v1/console/login/options')).body
  const assertion = person.authenticator.get(options)
  const reply = await callAsPage(app, 'POST', '/v1/console/login/passkey', { assertion })
  if (reply.status !== 200) throw new Error(`the login failed: ${reply.text}`)
  return personOf(app, person, reply, person.authenticator)
}

export function personOf(
  app: TestApp,
  { id, email }: { id: string; email: string },
  reply: Reply,
  authenticator = createAuthenticator(relyingPartyOf(app.core.settings.issuer).origin),
): Person {
  const cookie = cookieOf(reply)
  const { key } = reply.body
  const headers = () => ({ cookie, 'mayfly-console': key })
  const call: Person['call'] = (method, path, body, more = {}) =>
    callAsPage(app, method, path, body, { ...headers(), ...more })
  return {
    id,
    email,
    cookie,
    key,
    authenticator,
    headers,
    call,
    async act(method, path, body) {
      const first = await call(method, path, body)
      if (first.body?.error?.code !== 'confirmation_required') return first
      const assertion = authenticator.get(first.body.error.options)
      return call(method, path, body, { 'mayfly-confirmation': confirmationHeader(assertion) })
    },
    async register(name = 'laptop') {
      const begun = await call('POST', '/v1/console/passkeys/options')
      if (begun.status !== 200) return begun
      const registration = authenticator.create(begun.body.options)
      return call('POST', '/v1/console/passkeys', { name, registration })
    },
  }
}
