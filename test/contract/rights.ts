import { readConfig } from '../../src/backends/config-fields.ts'
import { kinds } from '../../src/backends/index.ts'
import type { Host, Kind } from '../../src/backends/kind.ts'
import { BackendError } from '../../src/domain/backend-error.ts'
import { createTestHost } from '../support/host.ts'
import type { Names } from '../support/scopes.ts'
import { newRequest } from './open-kind.ts'

/** One thing that a credential may do, as its upstream would decide it. */
export interface Right {
  readonly name: string
  /** The narrowest scopes of which each one alone permits it, by the documentation of the kind. */
  readonly by: readonly string[]
}

export const right = (name: string, ...more: readonly string[]): Right => ({ name, by: [name, ...more] })

export type Config = Record<string, unknown>

/** The rights of what a kind issues for these scopes. Throws `BackendError` (`unsupported`) where it refuses them. */
export type Read = (scopes: readonly string[]) => readonly Right[] | Promise<readonly Right[]>

/** Reads the rights of a kind's credentials, with one configuration of it. */
export interface RightsOfKind {
  readonly type: string
  /** Where a kind is there several times. */
  readonly variant?: string
  readonly config: Config
  /** Names that the forms of its scopes can hold; some are not those of the configuration. */
  readonly names: Names
  /** Further forms of scopes. */
  readonly forms?: readonly string[]
  /** Forms that give nothing here, each with the first of the names. */
  readonly refused?: readonly string[]
  /** Whether a scope permits a right that only comes of a narrower one: an X.509 certificate names no wildcard. */
  reaches?(scope: string, right: string): boolean
  open(opened: Opened): Read | Promise<Read>
}

export interface Opened {
  readonly kind: Kind
  /** With its defaults and what `complete` adds. */
  readonly config: Config
  readonly host: Host
}

export function kindOfType(type: string): Kind {
  const kind = kinds.find((one) => one.type === type)
  if (kind === undefined) throw new Error(`there is no kind ${type}`)
  return kind
}

/** The configuration as a server stores it. */
export async function completeConfig({ type, config: given }: RightsOfKind): Promise<Config> {
  const kind = kindOfType(type)
  const { config, faults } = readConfig(kind.config, given)
  if (faults.length > 0) throw new Error(`${type}: ${faults.join('; ')}`)
  return ((await kind.complete?.(config)) ?? config) as Config
}

/** One request as a kind sent it. */
export interface Sent {
  readonly method: string
  readonly url: URL
  /** JSON, or the pairs of a form. */
  // biome-ignore lint/suspicious/noExplicitAny: what each upstream calls it
  readonly body: any
}

/** Takes down what a kind asks of its upstream, which agrees to everything with the same reply. */
export function recordingHost(name: string, reply: object, status: number): { host: Host; sent: Sent[] } {
  const sent: Sent[] = []
  const { host } = createTestHost(name)
  const fetch: Host['fetch'] = async (url, { method = 'GET', body } = {}) => {
    sent.push({ method, url: new URL(url), body: bodyOf(body) })
    return new Response(JSON.stringify(reply), { status })
  }
  return { sent, host: { ...host, fetch, idToken: async () => 'token' } }
}

function bodyOf(body: unknown): unknown {
  if (body === undefined || body === null) return undefined
  const text = String(body)
  if (body instanceof URLSearchParams || !text.startsWith('{')) {
    return Object.fromEntries(new URLSearchParams(text))
  }
  return JSON.parse(text)
}

export const isRefusal = (error: unknown) => error instanceof BackendError && error.fault === 'unsupported'

/** A token of any authorization server. */
/** A token, and who asks for it. */
const TOKEN = {
  ...{ access_token: 'token', token_type: 'Bearer', expires_in: 3600 },
  ...{ login: 'mayfly', id: 1, workplace: { slug: 'mayfly' } },
}

/**
 * For a kind that speaks HTTP: issues, and reads the rights from the requests. What the kind makes of the reply is no affair of
 * these tests.
 */
export function bySending(
  read: (sent: readonly Sent[], config: Config) => readonly Right[],
  { reply = TOKEN, status = 200 }: { readonly reply?: object; readonly status?: number } = {},
): RightsOfKind['open'] {
  return ({ kind, config }) => {
    return async (scopes) => {
      const { host, sent } = recordingHost('here', reply, status)
      const backend = await kind.open(config, host)
      const outcome = await backend.issue(newRequest(scopes), new AbortController().signal).then(
        () => undefined,
        (error: unknown) => error,
      )
      const isAnswered = outcome === undefined || (outcome instanceof BackendError && sent.length > 0)
      if (!isAnswered || isRefusal(outcome)) throw outcome
      return read(sent, config)
    }
  }
}

/** The one request of a method whose path matches. */
export function requestOf(sent: readonly Sent[], method: string, path: RegExp): Sent {
  const [found, ...others] = sent.filter((one) => one.method === method && path.test(one.url.pathname))
  if (found === undefined || others.length > 0) {
    const all = sent.map((one) => `${one.method} ${one.url.pathname}`).join(', ')
    throw new Error(`not one ${method} ${path} among: ${all}`)
  }
  return found
}

export const textsOf = (value: unknown): string[] =>
  typeof value === 'string' ? value.split(' ').filter((text) => text !== '') : []

/** The payload of a JWT. */
// biome-ignore lint/suspicious/noExplicitAny: claims of each kind
export function claimsOf(token: unknown): any {
  return JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString())
}

/** A glob whose only sign is `*`, for any text. */
export function matchesGlob(glob: string, text: string): boolean {
  const literal = (part: string) => part.replace(/[^A-Za-z0-9_]/g, '\\$&')
  return new RegExp(`^${glob.split('*').map(literal).join('[^]*')}$`).test(text)
}
