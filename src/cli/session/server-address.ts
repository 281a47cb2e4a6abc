import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { CliError, usage } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'

export const DEFAULT_SERVER = 'http://127.0.0.1:8620'

/** A server in canonical form: `https://host[:port][/path]`, or `unix:/path/of/socket`. */
export interface ServerAddress {
  readonly text: string
  /** The address for the client. */
  readonly url: string
  readonly socketPath?: string | undefined
  /** Its name is one of this machine: a socket, `localhost`, `127.0.0.0/8`, `::1`. */
  readonly isLocal: boolean
}

/** Throws `CliError` (usage) for an invalid address, or if secrets would travel unencrypted. */
export function serverOf(text: string, env: Surroundings['env']): ServerAddress {
  const socketPath = /^unix:(?:\/\/)?(\/.+)$/.exec(text)?.[1]
  if (socketPath !== undefined)
    return { text: `unix:${socketPath}`, url: 'http://localhost', socketPath, isLocal: true }
  const url = parse(text)
  const isLocal = isLoopbackHost(url.hostname)
  if (url.protocol === 'http:' && !isLocal && env['MAYFLY_ALLOW_HTTP'] !== '1')
    throw new CliError('insecure_server', `Your secrets would travel to ${url.origin} unencrypted.`, {
      exit: 2,
      hint: 'Use https://, or set MAYFLY_ALLOW_HTTP=1 in a trusted network.',
    })
  const address = url.href.replace(/\/+$/, '')
  return { text: address, url: address, isLocal }
}

/** Whether both are the same server in canonical form: `localhost` and `127.0.0.1` are one host. */
export function isSameServer(one: string, other: string): boolean {
  return one === other || byNumber(one) === byNumber(other)
}

const byNumber = (address: string) =>
  address.replace(/^(?<scheme>https?:\/\/)localhost(?![^:/])/, '$<scheme>127.0.0.1')

function parse(text: string): URL {
  const hint = 'Write it as https://mayfly.example.com, http://127.0.0.1:8620 or unix:/path.'
  // A name without https:// is the most common mistake; URL would take it for a scheme or a path.
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) throw usage(`${JSON.stringify(text.slice(0, 80))} is not a server address.`, hint)
  if (url.username !== '' || url.password !== '')
    throw usage('The server address contains a user or a password.', 'Use `mayfly login` instead.')
  if (url.search !== '' || url.hash !== '')
    throw usage('The server address contains a query or a fragment.', hint)
  return url
}
