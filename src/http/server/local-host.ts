import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { isLoopbackAddress } from '../../domain/network/loopback.ts'

/** `misdirected`: a local process in every respect, except that its `Host` is not ours (421). */
export type LocalVerdict = 'local' | 'not_local' | 'misdirected'

export interface LocalHostOptions {
  mode: 'auto' | 'off'
  /** The port that we listen on; a function, because it is known only after `listen`. */
  port(): number
  issuerIsLoopback: boolean
  /** With trusted proxies no request is known to be local. */
  trustedProxies: boolean
  platform: NodeJS.Platform
  /** See `createPeerUids`; used on Linux only. */
  peerUid(socket: Socket): number | undefined | Promise<number | undefined>
  serverUid: number
  tls: boolean
}

/**
 * Decides whether a request may use `/v1/admin/*` without credentials: only a process of our own user on this host may,
 * and one of root if the issuer is a loopback address. Every condition must hold. A request that a proxy marked or that carries `Authorization` is
 * `not_local` with any `Host`: it may be meant for a public name.
 */
export function createLocalHostRule(
  options: LocalHostOptions,
): (request: IncomingMessage) => LocalVerdict | Promise<LocalVerdict> {
  const looksUpUid = options.platform === 'linux'
  const off = options.mode === 'off' || options.trustedProxies || (!looksUpUid && !options.issuerIsLoopback)
  return (request) => {
    const { headers, socket } = request
    // A bad token never falls back to local trust.
    if (off || headers.authorization !== undefined) return 'not_local'
    if (!isLoopbackAddress(socket.remoteAddress) || !isLoopbackAddress(socket.localAddress))
      return 'not_local'
    if (forwardedHeaders(headers)) return 'not_local'
    // Before the browser checks: a page whose name was rebound to 127.0.0.1 gets the exact error.
    if (!isOurHost(headers.host, options.port(), options.tls)) return 'misdirected'
    if (isHttp10(request) || isFromBrowser(headers) || request.url?.startsWith('/') !== true)
      return 'not_local'
    if (!looksUpUid) return 'local'
    const uid = options.peerUid(socket)
    if (uid instanceof Promise) return uid.then((found) => decideUid(found, options))
    return decideUid(uid, options)
  }
}

/** Where clients come through a proxy, a request of root may be from a proxy that runs as root. */
function decideUid(uid: number | undefined, { serverUid, issuerIsLoopback }: LocalHostOptions): LocalVerdict {
  return uid === serverUid || (uid === 0 && issuerIsLoopback) ? 'local' : 'not_local'
}

function isOurHost(host: string | undefined, port: number, tls: boolean): boolean {
  const match = /^(localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?$/i.exec(host ?? '')
  if (match === null) return false
  const named = match[2] === undefined ? (tls ? 443 : 80) : Number(match[2])
  return named === port
}

/** HTTP/1.0 comes from proxies, by default from nginx, which are not local clients. */
function isHttp10(request: IncomingMessage): boolean {
  return request.httpVersionMajor < 1 || (request.httpVersionMajor === 1 && request.httpVersionMinor < 1)
}

function isFromBrowser(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  return headers.origin !== undefined || (site !== undefined && site !== 'none')
}

const FORWARDED = new Set(['forwarded', 'x-real-ip', 'via', 'true-client-ip', 'x-client-ip'])
const FORWARDED_PREFIXES = ['x-forwarded', 'cf-', 'x-envoy-', 'tailscale-']

/** Whether a header says that a proxy forwarded the request. */
export function forwardedHeaders(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some(
    (name) => FORWARDED.has(name) || FORWARDED_PREFIXES.some((prefix) => name.startsWith(prefix)),
  )
}
