import { isLoopbackHost } from '../network/loopback.ts'

/** Where people reach this server with a browser, and as what passkeys know it. */
export interface RelyingParty {
  /** The origin of its pages. */
  readonly origin: string
  /** The host that passkeys belong to (WebAuthn Level 3, §5.1.2). */
  readonly id: string
  /** The address of the console. */
  readonly consoleUrl: string
  /** Over TLS: cookies are `Secure`, and have a name that only such a host can set. */
  readonly isSecure: boolean
}

/** An IP address cannot have passkeys, so a server on the loopback calls itself `localhost`. */
export function relyingPartyOf(issuer: string): RelyingParty {
  const url = new URL(issuer)
  if (isLoopbackHost(url.hostname)) url.hostname = 'localhost'
  return {
    origin: url.origin,
    id: url.hostname,
    consoleUrl: `${url.origin}/console`,
    isSecure: url.protocol === 'https:',
  }
}
