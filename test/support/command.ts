import { createHash, randomBytes } from 'node:crypto'
import type { Client, Reply, TestApp } from './app.ts'
import type { Person } from './person.ts'

/** A command that logs in as an operator, as `mayfly login` does. */
export const CLIENT = 'mayfly-cli'
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const COMMANDS = '/v1/console/commands'

export type Form = Record<string, string> | string

/** From an address of its own, as a proxy that the server trusts says, if one is given. */
export async function postForm(
  app: TestApp,
  path: string,
  form: Form,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await fetch(app.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      'user-agent': 'mayfly/test',
      ...headers,
    },
    body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

export const beginDevice = (app: TestApp, form: Form = { client_id: CLIENT, host: 'laptop' }) =>
  postForm(app, '/oauth/device_authorization', form)

export const pollDevice = (app: TestApp, code: string, more: Record<string, string> = {}) =>
  postForm(app, '/oauth/token', { grant_type: DEVICE_GRANT, client_id: CLIENT, device_code: code, ...more })

export interface BrowserLogin {
  readonly verifier: string
  readonly state: string
  readonly redirectUri: string
  /** The query of the address that the command opens. */
  readonly request: string
}

/** `change`: parameters of the request that are others; undefined leaves one out. */
export function newBrowserLogin(change: Record<string, string | undefined> = {}): BrowserLogin {
  const verifier = randomBytes(32).toString('base64url')
  const parameters = {
    response_type: 'code',
    client_id: CLIENT,
    redirect_uri: 'http://127.0.0.1:49152/callback',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    state: randomBytes(8).toString('hex'),
    host: 'laptop',
    ...change,
  }
  const given = Object.entries(parameters).filter((one): one is [string, string] => one[1] !== undefined)
  return {
    verifier,
    state: parameters.state ?? '',
    redirectUri: parameters.redirect_uri ?? '',
    request: new URLSearchParams(given).toString(),
  }
}

export const look = (person: Person, body: unknown) => person.call('POST', `${COMMANDS}/look`, body)
export const allow = (person: Person, body: unknown) => person.act('POST', `${COMMANDS}/allow`, body)
export const deny = (person: Person, body: unknown) => person.call('POST', `${COMMANDS}/deny`, body)

/** The parameters of the address to which a browser is sent. */
export const answerIn = ({ body }: Reply) => Object.fromEntries(new URL(body.redirect_to).searchParams)

export const redeem = (
  app: TestApp,
  login: BrowserLogin,
  code: string,
  change: Record<string, string> = {},
): Promise<Reply> =>
  postForm(app, '/oauth/token', {
    grant_type: 'authorization_code',
    client_id: CLIENT,
    code,
    redirect_uri: login.redirectUri,
    code_verifier: login.verifier,
    ...change,
  })

export interface Command {
  readonly token: string
  readonly client: Client
  /** Id of its session. */
  readonly id: string
}

export async function commandOf(app: TestApp, reply: Reply): Promise<Command> {
  if (reply.status !== 200) throw new Error(`the command got no token: ${reply.text}`)
  const token = reply.body.access_token
  const client = app.as(token)
  return { token, client, id: (await client.get('/v1/admin/me')).body.session.id }
}

/** A command that this person allowed by a code. */
export async function commandByCode(app: TestApp, person: Person, host = 'laptop'): Promise<Command> {
  const begun = await beginDevice(app, { client_id: CLIENT, host })
  if (begun.status !== 200) throw new Error(`the login did not begin: ${begun.text}`)
  const allowed = await allow(person, { user_code: begun.body.user_code })
  if (allowed.status !== 200) throw new Error(`the login was not allowed: ${allowed.text}`)
  return commandOf(app, await pollDevice(app, begun.body.device_code))
}

/** A command that this person allowed in a browser. */
export async function commandByBrowser(app: TestApp, person: Person, host = 'laptop'): Promise<Command> {
  const login = newBrowserLogin({ host })
  const { code = '' } = answerIn(await allow(person, { request: login.request }))
  return commandOf(app, await redeem(app, login, code))
}
