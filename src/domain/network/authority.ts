/** Host and port in the one form that is compared. */
export interface HostPort {
  /** Lower case, punycode, no dot at the end; an address of IPv6 in brackets. */
  readonly host: string
  readonly port: number
}

const DEFAULT_PORTS = { https: 443, http: 80 } as const

export type Scheme = keyof typeof DEFAULT_PORTS

/** Reads `host`, `host:port` or `[::1]:port`. Undefined: it is not one. */
export function readAuthority(_text: string, _scheme: Scheme): HostPort | undefined {
  return undefined
}

/** `host:port`, always with the port. */
export function authorityText({ host, port }: HostPort): string {
  return `${host}:${port}`
}

/** For `Host`: without the port that the scheme implies. */
export function hostHeader({ host, port }: HostPort, scheme: Scheme): string {
  return port === DEFAULT_PORTS[scheme] ? host : `${host}:${port}`
}
