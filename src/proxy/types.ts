import type { HttpUse, Use } from '../domain/use.ts'

/** What the rooms of the proxy say to each other. Times in epoch ms unless a name ends in `Ms`. */

/** One credential that the run asked for, as long as the run lives: it is renewed under the same placeholders. */
export interface Held {
  /** Of the backend; with several of one backend, also of the request: `orders`, `orders#2`. */
  readonly name: string
  readonly backend: string
  /** Kind of the backend. */
  readonly type: string
  readonly uses: readonly Use[]
  /** By field of the credential; `''` is its one value. Every secret field has one. */
  readonly placeholders: ReadonlyMap<string, string>
  /** What a request gets that arrives now. */
  now(): Live | Unusable
}

/** A credential with its secrets. */
export interface Live {
  readonly state: 'live'
  readonly credentialId: string
  /** By field; `''` is the one value. Never logged, never recorded. */
  readonly secrets: ReadonlyMap<string, string>
  /** The fields that are not secret: `username`, `host`. One that was renewed may have another `username`. */
  readonly open: ReadonlyMap<string, string>
  readonly expiresAt: number
}

/**
 * `ended`: it was revoked, and this run gets no other of that backend (403). `unsure`: there was no sign of life from the server
 * for too long, or it expired and no new one could be had (503).
 */
export interface Unusable {
  readonly state: 'ended' | 'unsure'
  readonly why: string
}

/** Open sockets and streams by the credential that they use. */
export interface Cuts {
  /**
   * `destroy` is called at once, and once, when the credential ends; also if it has ended already. Returns what to call when the
   * socket has closed by itself. `destroy` must reset a TCP connection, not close it in peace.
   */
  track(credentialId: string, destroy: () => void): () => void
  /** Destroys all that use it, and all that come later. Returns how many there were. */
  cut(credentialId: string): number
  cutAll(): number
}

export type Decision = 'injected' | 'forwarded' | 'tunnelled' | 'refused' | 'misused'

/** One request or connection, as the server records it. Never a value of a query, a header or a body. */
export interface RequestLine {
  readonly at: number
  readonly protocol: 'http' | 'postgres' | 'mysql' | 'redis' | 'tunnel'
  /** null for a database or a tunnel. */
  readonly method: string | null
  /** `api.github.com`, `api.github.com:8443`. */
  readonly authority: string
  /** The path that was sent, with only ids replaced by `*`; null where no rule matched. */
  readonly path: string | null
  /** null: none was received. */
  readonly status: number | null
  readonly bytesSent: number
  readonly bytesReceived: number
  readonly durationMs: number
  readonly decision: Decision
  /** A code of `refusals.ts`; null unless refused or misused. */
  readonly reason: string | null
  readonly backend: string | null
  readonly credentialId: string | null
  /** The name of the placeholder, `<held>.<field>`; never its value. */
  readonly placeholder: string | null
  /** How often a secret was masked in the reply. */
  readonly redacted: number
}

export interface Recorder {
  record(line: RequestLine): void
}

/** Where the child reaches one use without a proxy variable. */
export interface Site {
  readonly held: Held
  readonly use: HttpUse
  /** `http://127.0.0.1:41213`, or https with the run's authority. */
  readonly url: string
}

/** Of one run. In memory only. */
export interface Authority {
  /** PEM of the certificate of the authority. */
  readonly certificate: string
  /** Key and certificate chain for this host name or address; made once and renewed before it expires. */
  leafFor(host: string): Promise<{ readonly key: string; readonly cert: string }>
}

export interface OtherAuthorities {
  /** What happens to requests to authorities of no backend. */
  readonly others: 'inspect' | 'refuse'
  /** Host names whose TLS is not opened: `registry.example.com`, `*.example.com`. Blind for placeholders. */
  readonly tunnel: readonly string[]
}

/** What the user decides about one proxy. */
export interface ProxySettings extends OtherAuthorities {
  /** What a placeholder does that is sent where it does not belong; the request is refused in any case. */
  readonly onMisuse: 'refuse' | 'end_run'
  readonly idleMs: number
  /** Address of all listeners, and the port of the one for `HTTPS_PROXY`; 0: a free one. */
  readonly listen: { readonly host: string; readonly port: number }
  /** Users whose processes may connect; `any` where the network namespace is the border. Undefined: the one of the proxy. */
  readonly uids: readonly number[] | 'any' | undefined
}

export interface ProxyLog {
  warn(message: string): void
}
