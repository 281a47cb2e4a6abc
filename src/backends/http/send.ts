import { BackendError } from '../../domain/backend-error.ts'
import { parseJson } from '../../domain/formats/json.ts'
import type { Host } from '../kind.ts'
import { type Auth, createAuth } from './auth.ts'
import type { Call, Config, Reply, Send } from './calls.ts'
import type { Recipe, RecipeRequest } from './schema.ts'
import {
  fillHeader,
  fillJson,
  fillPairs,
  fillPath,
  fillText,
  isPointer,
  pointAt,
  type Vars,
} from './template.ts'

/** Sends the requests of a recipe, logged in as it says. Throws `BackendError`. */
export function createSend(recipe: Recipe, config: Config, host: Host, base: URL): Send {
  const trust = {
    local: config['local'] === true,
    ...(typeof config['ca'] === 'string' ? { ca: config['ca'] } : {}),
  }
  async function exchange(request: RecipeRequest, call: Call, login: Readonly<Record<string, string>>) {
    const url = urlOf(base, request, call.vars)
    const { body, type } = bodyOf(request, call)
    const headers = Object.entries({ ...recipe.headers, ...request.headers }).map(
      ([name, value]) => [name.toLowerCase(), fillHeader(value, call.vars)] as const,
    )
    return host.fetch(
      url,
      {
        method: request.request.split(' ')[0] ?? 'GET',
        headers: {
          accept: 'application/json',
          ...(type === undefined ? {} : { 'content-type': type }),
          ...Object.fromEntries(headers),
          ...login,
        },
        ...(body === undefined ? {} : { body }),
        signal: call.signal,
      },
      trust,
    )
  }
  async function understood(request: RecipeRequest, call: Call, response: Response): Promise<Reply> {
    const { status } = response
    const text = await response.text()
    const isOk = request.ok === undefined ? status >= 200 && status < 300 : request.ok.includes(status)
    if (!isOk && !(call.expected ?? []).includes(status)) throw faultOf(recipe, request, status, text)
    return { status, json: () => jsonOf(recipe, text) }
  }
  const plain: Send = async (request, call) => understood(request, call, await exchange(request, call, {}))
  const auth: Auth = createAuth(recipe, config, host, plain)
  return async (request, call) => {
    const first = await exchange(request, call, await auth.headers(call.signal))
    // A token that was fetched earlier may have ended; a 401 has changed nothing upstream.
    const response =
      first.status === 401 && auth.forget()
        ? await exchange(request, call, await auth.headers(call.signal))
        : first
    return understood(request, call, response)
  }
}

/** A value by a JSON Pointer into a reply, or by a template. Throws `unavailable` for a reply without one. */
export function takeOne(recipe: Recipe, from: string, reply: unknown, vars: Vars): string | number {
  if (!isPointer(from)) return fillText(from, vars)
  const value = pointAt(reply, from)
  if ((typeof value === 'string' && value !== '') || (typeof value === 'number' && Number.isFinite(value)))
    return value
  throw odd(recipe)
}

export function takeAll(
  recipe: Recipe,
  from: Readonly<Record<string, string>> | undefined,
  reply: unknown,
  vars: Vars,
): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(from ?? {}).map(([name, where]) => [name, takeOne(recipe, where, reply, vars)]),
  )
}

/** The fault of a reply of another form than the recipe says: whether something was created is not known. */
export const odd = ({ title }: Recipe) =>
  new BackendError('unavailable', `${title} sent a reply that cannot be understood.`, {
    reason: 'bad_answer',
  })

function jsonOf(recipe: Recipe, text: string): unknown {
  const value = parseJson(text)
  if (value === undefined) throw odd(recipe)
  return value
}

/** Throws `misconfigured` for an address that is not of a server, or would show secrets on the way. */
export function requireBase(config: Config): URL {
  const text = String(config['base_url'])
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || /[?#@\\]/.test(text)) {
    throw new BackendError(
      'misconfigured',
      '"base_url" must be a URL such as https://example.com, without a login or query.',
    )
  }
  if (url.protocol === 'http:' && config['local'] !== true) {
    throw new BackendError('misconfigured', '"base_url" must begin with https://, unless "local" is true.')
  }
  return url
}

function urlOf(base: URL, { request, query }: RecipeRequest, vars: Vars): URL['href'] {
  const path = base.pathname.replace(/\/+$/, '') + fillPath(request.slice(request.indexOf(' ') + 1), vars)
  const url = new URL(path, base)
  // A path that was built segment by segment must mean the same to the URL parser.
  if (url.origin !== base.origin || url.pathname !== path) {
    throw new BackendError('unsupported', 'A scope or a name cannot be part of the address of this upstream.')
  }
  url.search = query === undefined ? '' : fillPairs(query, vars).toString()
  return url.href
}

function bodyOf({ json, form }: RecipeRequest, { vars, each = [] }: Call): { body?: string; type?: string } {
  if (json !== undefined)
    return { body: JSON.stringify(fillJson(json, vars, each)), type: 'application/json' }
  if (form === undefined) return {}
  return { body: fillPairs(form, vars).toString(), type: 'application/x-www-form-urlencoded' }
}

function faultOf(
  { title, statuses }: Recipe,
  { needs }: RecipeRequest,
  status: number,
  text: string,
): BackendError {
  // A success of another kind may hold the new secret.
  const detail = { detail: status < 400 ? String(status) : `${status}: ${text.slice(0, 500)}` }
  const { denied = [401, 403], unavailable = [408, 429] } = statuses ?? {}
  if (unavailable.includes(status) || status >= 500) {
    return new BackendError(
      'unavailable',
      `${title} cannot take the request at this time (status ${status}).`,
      { ...detail, ...(status === 429 && { reason: 'rate_limited' as const }) },
    )
  }
  const missing = needs === undefined ? '' : ` Mayfly's login needs ${needs}.`
  if (denied.includes(status)) {
    return new BackendError('denied', `${title} refused the request (status ${status}).${missing}`, {
      ...detail,
      // RFC 9110 §15.5.2: the login is not accepted. 403 may blame one request.
      login: status === 401,
    })
  }
  // A success status other than the documented ones: something may have been done.
  if (status < 300)
    return new BackendError(
      'unavailable',
      `${title} answered with status ${status}, which is not expected.`,
      { ...detail, reason: 'bad_answer' },
    )
  return new BackendError(
    'misconfigured',
    `${title} did not accept the request (status ${status}).${missing}`,
    detail,
  )
}
