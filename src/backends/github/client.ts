import type { KeyObject } from 'node:crypto'
import { type BackendError, denied, misconfigured, unsupported } from '../../domain/backend-error.ts'
import { isObject, type JsonObject } from '../../domain/formats/json.ts'
import { signAssertion } from '../assertion.ts'
import {
  busy,
  callJson,
  detailOf,
  type JsonCall,
  type JsonReply,
  notUnderstood,
  textIn,
} from '../json-api.ts'
import type { Host } from '../kind.ts'
import type { Config } from './config.ts'
import { isLevel, type Level } from './scopes.ts'

const NAME = 'GitHub'
/** The oldest version that is supported, so that older Enterprise Servers know it ("API Versions"). */
const VERSION = '2022-11-28'
const HEADERS = {
  accept: 'application/vnd.github+json',
  'x-github-api-version': VERSION,
}
/** "Generating a JSON Web Token (JWT) for a GitHub App": `iat` a minute ago for clocks that differ, `exp` within ten minutes. */
const JWT_EARLIER_S = 60
const JWT_S = 600
const JWT_REUSED_MS = 300_000

/** A repository in a reply has 6 to 8 KB. */
const BASE_BYTES = 131_072
const REPOSITORY_BYTES = 16_384
const PER_PAGE = 100
const MAX_PAGES = 50
const AT_ONCE = 8

/** The body of the request for a token. */
export interface TokenPlan {
  readonly repositories: readonly string[]
  readonly permissions: Readonly<Record<string, Level>>
}

/** An account's installation of the App. */
export interface Installation {
  readonly id: number
  readonly owner: string
  readonly permissions: Readonly<Record<string, Level>>
}

export interface Token {
  readonly token: string
  /** Epoch ms. */
  readonly expiresAt: number
  readonly permissions: JsonObject
  /** Names; `undefined` where the reply lists none. */
  readonly repositories: readonly string[] | undefined
}

export type GitHub = ReturnType<typeof createClient>

/** Requests by the App itself, or by one of its tokens. */
function createCalls(settings: Config, key: KeyObject, host: Host) {
  const { local, ca } = settings
  const base = settings.base_url.replace(/\/+$/, '')
  let jwt: { readonly text: Promise<string>; readonly at: number } | undefined

  function appJwt(): Promise<string> {
    const now = host.now()
    if (jwt === undefined || Math.abs(now - jwt.at) > JWT_REUSED_MS) {
      jwt = { text: signAppJwt(settings.app_id, key, now), at: now }
    }
    return jwt.text
  }

  async function byToken(bearer: string, path: string, init: JsonCall, maxBytes = BASE_BYTES) {
    const headers = { ...HEADERS, authorization: `Bearer ${bearer}` }
    const options = { local, maxBytes, ...(ca === undefined ? {} : { ca }) }
    const reply = await callJson(host, NAME, `${base}${path}`, { ...init, headers }, options)
    // "Rate limits for the REST API": both kinds of limit may answer with 403.
    if (reply.status === 403 && isLimited(reply)) throw busy(NAME, reply)
    return reply
  }

  return {
    byToken,
    byApp: async (path: string, init: JsonCall, maxBytes?: number) =>
      byToken(await appJwt(), path, init, maxBytes),
  }
}

/** A secondary limit may come without a header that says so; Octokit, too, tells it by the message. */
function isLimited({ headers, body }: JsonReply): boolean {
  const says = /\bsecondary rate\b/i.test(String(body?.['message']))
  return says || headers.has('retry-after') || headers.get('x-ratelimit-remaining') === '0'
}

export function createClient(settings: Config, key: KeyObject, host: Host) {
  const { byApp, byToken } = createCalls(settings, key, host)

  async function createToken(id: number, plan: Partial<TokenPlan>, signal: AbortSignal): Promise<Token> {
    const maxBytes = BASE_BYTES + REPOSITORY_BYTES * (plan.repositories?.length ?? 0)
    const path = `/app/installations/${id}/access_tokens`
    const reply = await byApp(path, { method: 'POST', json: plan, signal }, maxBytes)
    if (reply.status !== 201) throw refusal(reply)
    return readToken(reply.body)
  }

  /** "Revoke an installation access token": 204. A token that has ended answers 401. */
  async function endToken(token: string, signal: AbortSignal): Promise<void> {
    const reply = await byToken(token, '/installation/token', { method: 'DELETE', signal })
    if (reply.status === 204) return
    const isGone = reply.status === 401 && typeof reply.body?.['message'] === 'string'
    if (!isGone) throw refusal(reply)
  }

  return {
    createToken,
    endToken,

    /** "Get the authenticated app". Returns by how many ms GitHub's clock is ahead of ours. */
    async requireApp(signal: AbortSignal): Promise<number> {
      const reply = await byApp('/app', { signal })
      if (reply.status !== 200) throw refusal(reply)
      textIn(NAME, reply.body, 'node_id')
      const date = Date.parse(reply.headers.get('date') ?? '')
      return Number.isNaN(date) ? 0 : date - host.now()
    },

    /** Whether any account has installed the App. */
    async hasInstallation(signal: AbortSignal): Promise<boolean> {
      const reply = await byApp('/app/installations?per_page=1', { signal })
      if (reply.status !== 200) throw refusal(reply)
      return (reply.items ?? []).length > 0
    },

    /** The configured installation, or the account's: of an organization, else of a user. */
    async installationOf(owner: string | undefined, signal: AbortSignal): Promise<Installation> {
      const id = settings.installation_id
      const first = id === undefined ? `/orgs/${owner}/installation` : `/app/installations/${id}`
      let reply = await byApp(first, { signal })
      if (reply.status === 404 && id === undefined)
        reply = await byApp(`/users/${owner}/installation`, { signal })
      if (reply.status === 404) throw notInstalled(owner)
      if (reply.status !== 200) throw refusal(reply)
      return readInstallation(reply.body)
    },

    /**
     * Names of the repositories of the installation. Only a token of it may list them ("List repositories accessible to the app
     * installation"): this one can do no more than that, never leaves Mayfly, and ends with the list.
     */
    async listRepositories(id: number, signal: AbortSignal): Promise<string[]> {
      const { token } = await createToken(id, { permissions: { metadata: 'read' } }, signal)
      try {
        return await listAll((page) => listPage(byToken, token, page, signal))
      } finally {
        await endToken(token, signal).catch((error: Error) =>
          host.log.debug({ detail: error.message }, 'the token that listed repositories lasts its hour'),
        )
      }
    },
  }
}

interface Page {
  readonly total: number
  readonly names: readonly string[]
}

async function listAll(pageOf: (page: number) => Promise<Page>): Promise<string[]> {
  const first = await pageOf(1)
  const last = Math.ceil(first.total / PER_PAGE)
  if (last > MAX_PAGES) throw unsupported(TOO_MANY)
  const names = [...first.names]
  for (let next = 2; next <= last; next += AT_ONCE) {
    const pages = Array.from({ length: Math.min(AT_ONCE, last - next + 1) }, (_, at) => pageOf(next + at))
    for (const page of await Promise.all(pages)) names.push(...page.names)
  }
  return names
}

async function listPage(
  byToken: ReturnType<typeof createCalls>['byToken'],
  token: string,
  page: number,
  signal: AbortSignal,
): Promise<Page> {
  const path = `/installation/repositories?per_page=${PER_PAGE}&page=${page}`
  const reply = await byToken(token, path, { signal }, BASE_BYTES + PER_PAGE * REPOSITORY_BYTES)
  if (reply.status !== 200) throw refusal(reply)
  const total = reply.body?.['total_count']
  const names = namesIn(reply.body)
  if (typeof total !== 'number' || names === undefined) throw notUnderstood(NAME)
  return { total, names }
}

const TOO_MANY = `The installation has more than ${PER_PAGE * MAX_PAGES} repositories; name those that are needed.`

/** RS256 (RFC 7518 §3.3) with the App as `iss`. */
async function signAppJwt(appId: string, key: KeyObject, now: number): Promise<string> {
  const iat = Math.floor(now / 1000) - JWT_EARLIER_S
  return signAssertion(key, { alg: 'RS256' }, { iat, exp: iat + JWT_S, iss: appId })
}

function readToken(body: JsonObject | undefined): Token {
  const token = textIn(NAME, body, 'token')
  const expiresAt = Date.parse(textIn(NAME, body, 'expires_at'))
  const permissions = body?.['permissions']
  if (Number.isNaN(expiresAt) || !isObject(permissions)) throw notUnderstood(NAME)
  return { token, expiresAt, permissions, repositories: namesIn(body) }
}

function namesIn(body: JsonObject | undefined): string[] | undefined {
  const list = body?.['repositories']
  if (!Array.isArray(list)) return undefined
  return list.map((one: unknown) => textIn(NAME, isObject(one) ? one : undefined, 'name'))
}

function readInstallation(body: JsonObject | undefined): Installation {
  const { id, account, permissions, suspended_at: suspended } = body ?? {}
  if (typeof id !== 'number' || !isObject(permissions)) throw notUnderstood(NAME)
  const owner = textIn(NAME, isObject(account) ? account : undefined, 'login')
  if (typeof suspended === 'string') {
    throw denied(`The installation of the App in ${owner} is suspended.`)
  }
  const known = Object.entries(permissions).filter((entry): entry is [string, Level] => isLevel(entry[1]))
  return { id, owner, permissions: Object.fromEntries(known) }
}

function notInstalled(owner: string | undefined): BackendError {
  const where = owner === undefined ? 'with this "installation_id"' : `in the account ${owner}`
  return misconfigured(`The App has no installation ${where}.`)
}

/** An answer which says that nothing was created. */
function refusal(reply: JsonReply): BackendError {
  const detail = detailOf(reply)
  if (reply.status < 400) return notUnderstood(NAME)
  if (reply.status === 401) {
    const why = 'GitHub refused the App: check "app_id" and "private_key", and the clock of this machine.'
    return denied(why, { detail, login: true })
  }
  if (reply.status === 404) return notInstalled(undefined)
  if (reply.status === 422) {
    const why =
      'GitHub refused: a repository does not exist in the installation, or it lacks a permission requested.'
    return unsupported(why, { detail })
  }
  return denied(`GitHub refused the request (${reply.status}).`, { detail })
}
