import { isLoopbackHost } from '../../domain/network/loopback.ts'
import { usage } from '../frame/failure.ts'

/** A git server, as `credential.<url>` and the credential helper protocol name it. */
export interface GitHost {
  readonly protocol: 'https' | 'http'
  /** Lower case, with a port other than the default. */
  readonly host: string
  /** `protocol://host`. */
  readonly url: string
}

const HOST = /^[a-z0-9.:[\]-]+$/

/**
 * Parses `git.example.com`, `git.example.com:8443` or a URL. Throws `CliError` (usage) for an invalid host, and for plain
 * http to another machine, where others could read the credential on its way.
 */
export function parseGitHost(text: string): GitHost {
  const url = tryUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`)
  const isBare = url !== undefined && url.username === '' && url.password === '' && url.search === ''
  if (!isBare || url.hash !== '' || url.pathname !== '/' || !HOST.test(url.host))
    throw usage('The git host is not valid.', 'Example: git.example.com or git.example.com:8443.')
  if (url.protocol === 'https:') return { protocol: 'https', host: url.host, url: `https://${url.host}` }
  if (url.protocol === 'http:' && isLoopbackHost(url.hostname))
    return { protocol: 'http', host: url.host, url: `http://${url.host}` }
  throw usage(
    'Credentials are sent over https only, except to this machine.',
    'Give the host without http://.',
  )
}

/** Whether git asks for this host. Git sends a port only if the URL has one. */
export function isForHost(host: GitHost, asked: ReadonlyMap<string, string>): boolean {
  const protocol = asked.get('protocol')
  const name = asked.get('host')
  // A URL parser ends the host at these or drops them, but git takes them as part of the name.
  if (protocol !== host.protocol || name === undefined || /[\s\p{Cc}/\\?#@%]/u.test(name)) return false
  return tryUrl(`${protocol}://${name}`)?.host === host.host
}

function tryUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
