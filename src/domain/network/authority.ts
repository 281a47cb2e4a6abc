/** Host and port in the one form that is compared. */
export interface HostPort {
  /** Lower case, punycode, no dot at the end; an address of IPv6 in brackets. */
  readonly host: string
  readonly port: number
}

const DEFAULT_PORTS = { https: 443, http: 80 } as const

export type Scheme = keyof typeof DEFAULT_PORTS

const LONGEST_HOST = 253
/** What needs no parser: in lower case, and at its end no number, which could be an address of IPv4 in disguise. */
const PLAIN_NAME = /^(?:[a-z0-9_][a-z0-9_.-]*\.)?[a-z][a-z0-9_-]*$/
const IPV4 = /^(?:\d{1,3}\.){3}\d{1,3}$/
const PARTS = /^(\[[0-9a-f:.]{2,45}\]|[^\s:/?#@\\%[\]]+)(?::([0-9]{1,5}))?$/i

/**
 * Reads `host`, `host:port` or `[::1]:port`. Undefined: it is not one. A user, an escape, a zone and an empty port are refused; names
 * beyond ASCII and every way to write an address of IPv4 become the one that is connected to.
 */
export function readAuthority(text: string, scheme: Scheme): HostPort | undefined {
  const [, host, digits] = PARTS.exec(text) ?? []
  if (host === undefined) return undefined
  const port = digits === undefined ? DEFAULT_PORTS[scheme] : Number(digits)
  if (port < 1 || port > 65_535) return undefined
  const canonical = canonicalHost(host)
  return canonical === undefined ? undefined : { host: canonical, port }
}

function canonicalHost(host: string): string | undefined {
  if (PLAIN_NAME.test(host) && !host.includes('xn--')) return isName(host) ? host : undefined
  // Of any scheme that has hosts as `https` has them; a number such as `0x7f.1` becomes the address that it is.
  const parsed = URL.parse(`http://${host}`)
  if (parsed === null || parsed.pathname !== '/' || parsed.username !== '') return undefined
  const name = parsed.hostname.replace(/\.$/, '')
  if (name.startsWith('[')) return name
  // What ends like a number and is no address, a resolver could still take for one.
  return isName(name) && (/(?:^|\.)[^.0-9][^.]*$/.test(name) || IPV4.test(name)) ? name : undefined
}

function isName(name: string): boolean {
  // No empty label, and none longer than 63 (RFC 1035 §2.3.4).
  return name.length <= LONGEST_HOST && /^[a-z0-9_.-]+$/.test(name) && !/^\.|\.\.|\.$|[^.]{64}/.test(name)
}

/** `host:port`, always with the port. */
export function authorityText({ host, port }: HostPort): string {
  return `${host}:${port}`
}

/** For `Host`: without the port that the scheme implies. */
export function hostHeader({ host, port }: HostPort, scheme: Scheme): string {
  return port === DEFAULT_PORTS[scheme] ? host : `${host}:${port}`
}

export interface Origin extends HostPort {
  readonly scheme: Scheme
  /** The host stands for all that have one label or more before it: `https://*.amazonaws.com`. */
  readonly wildcard: boolean
}

/** Reads `https://host` or `https://host:port`, with nothing behind. */
export function readOrigin(text: string): Origin | undefined {
  const [, scheme, star, rest = ''] = /^(https?):\/\/(\*\.)?([^/]+)$/.exec(text) ?? []
  if (scheme !== 'https' && scheme !== 'http') return undefined
  const found = readAuthority(rest, scheme)
  if (found === undefined) return undefined
  const wildcard = star !== undefined
  // A wildcard over a whole top-level domain, or over addresses, is a mistake.
  if (wildcard && !/\.[a-z][a-z0-9-]*$/.test(found.host)) return undefined
  return { ...found, scheme, wildcard }
}
