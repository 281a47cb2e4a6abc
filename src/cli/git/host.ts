import { usage } from '../frame/failure.ts'

/** Where git talks to, as `credential.<url>` and the protocol of credential helpers have it. */
export interface GitHost {
  readonly protocol: 'https' | 'http'
  /** Lower case, with the port where it is not the protocol's own. */
  readonly host: string
  /** `protocol://host`. */
  readonly url: string
}

const HOST = /^[a-z0-9.:[\]-]+$/
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * `git.example.com`, `git.example.com:8443` or an address. Throws wrong usage for what is no host, and for plain
 * http to another machine: everybody on the way could read the credential.
 */
export function parseGitHost(text: string): GitHost {
  const url = tryUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`)
  const isBare = url !== undefined && url.username === '' && url.password === '' && url.search === ''
  if (!isBare || url.hash !== '' || url.pathname !== '/' || !HOST.test(url.host))
    throw usage(
      'The host of git is not of the accepted form.',
      'Give it as git.example.com or git.example.com:8443.',
    )
  if (url.protocol === 'https:') return { protocol: 'https', host: url.host, url: `https://${url.host}` }
  if (url.protocol === 'http:' && LOOPBACK.test(url.hostname))
    return { protocol: 'http', host: url.host, url: `http://${url.host}` }
  throw usage(
    'A credential is sent over https only; http is for this very machine.',
    'Give the host without http://.',
  )
}

/** Whether git asks for this host; it sends the port only where the address has one. */
export function isForHost(host: GitHost, asked: ReadonlyMap<string, string>): boolean {
  const protocol = asked.get('protocol')
  const name = asked.get('host')
  // These would end the host in an address, or be dropped from it, and to git they are part of the name.
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
