import type { Static, TObject, TSchema } from 'typebox'

/**
 * What a kind of backend promises. Public as `mayfly/plugin`.
 *
 * A kind talks to one type of upstream. It names what it creates after the credential's id, so that an issue
 * whose outcome is unknown can be undone, and it says truthfully whether it can end a credential at once.
 */
export interface Kind<C extends TObject = TObject, P extends TSchema = TSchema> {
  readonly type: string
  readonly title: string
  /**
   * TypeBox object; a field made by `secretField()` is sealed at rest and shown as `[redacted]`, one made by
   * `upstreamField()` says which upstream is meant, one by `protectionField()` how it is protected on the way.
   */
  readonly config: C
  /** Options of one request of this kind. */
  readonly params: P
  /** Lifetimes in ms that the upstream can keep; `why` is told to the administrator. */
  readonly limits: { readonly minTtlMs?: number; readonly maxTtlMs?: number; readonly why?: string }
  /** `exact`: ended at once. `expiry_only`: it lasts until the upstream's own expiry, and the record says so. */
  readonly revocation: 'exact' | 'expiry_only'
  /** Whether issuing reaches an upstream. Without one there is nothing to record first, nor to recover. */
  readonly upstream: boolean
  readonly scopes: {
    valid(scope: string): boolean
    readonly examples: readonly string[]
    readonly help: string
  }
  /** Fills in what the administrator may leave out (a key pair, say); the result is stored as the configuration. */
  complete?(config: Static<C>): Promise<Static<C>>
  open(config: Static<C>, host: Host): Promise<Backend<Static<P>>>
}

export interface Backend<P = unknown> extends AsyncDisposable {
  /** Reaches the upstream and changes nothing. Throws `BackendError` when issuing or revoking could not work. */
  check(signal: AbortSignal): Promise<void>
  issue(request: IssueRequest<P>, signal: AbortSignal): Promise<Issued>
  /** Idempotent: what is already gone counts as revoked. Absent where the upstream cannot revoke. */
  revoke?(handle: Handle, signal: AbortSignal): Promise<void>
  /** What to revoke when the outcome of `issue` is unknown. Present on every kind with an upstream that can revoke. */
  recover?(credentialId: string): Handle
  /** Public keys of a backend that is an issuer of its own, for its JWKS (RFC 7517 §5). */
  publicKeys?(): readonly Record<string, unknown>[]
}

/** What revoking needs, as plain JSON; sealed at rest. */
export type Handle = Readonly<Record<string, string | number | null>>

export interface IssueRequest<P> {
  readonly credentialId: string
  readonly agent: { readonly id: string; readonly name: string }
  /** Relative to the backend, granted already; an empty list grants nothing. */
  readonly scopes: readonly string[]
  readonly params: P
  /** Epoch ms. */
  readonly issuedAt: number
  /** Epoch ms: the upstream's own backstop is set here. */
  readonly expiresAt: number
}

export interface Issued {
  /** The one thing an agent needs. Where there are several parts, give `fields` and leave this out. */
  readonly secret?: string
  readonly fields?: Readonly<Record<string, string | number>>
  /** Epoch ms at which the upstream itself ends it, where that differs from what was asked. */
  readonly upstreamExpiresAt?: number
  readonly handle?: Handle
  /** Recorded in the audit; never secret. */
  readonly facts?: Readonly<Record<string, string | number>>
}

/** All that a kind may use of the server. */
export interface Host {
  /** The backend's name. */
  readonly name: string
  /** `<issuer>/backends/<name>`: where this backend's own discovery document lives. */
  readonly issuer: string
  /** Epoch ms. */
  now(): number
  /** `fetch` with the egress rules: no redirects, 10 s, 256 KiB, checked addresses. */
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>
  /** The checked address to connect to. Throws `BackendError` for loopback and private metadata addresses unless `local`. */
  resolve(hostname: string, options: { local: boolean }): Promise<string>
  readonly log: {
    warn(fields: Record<string, unknown>, message: string): void
    debug(fields: Record<string, unknown>, message: string): void
  }
}

export type Fault = 'unavailable' | 'timeout' | 'denied' | 'misconfigured' | 'unsupported'

/** What went wrong upstream. `publicMessage` is ours and may be shown to an administrator; `detail` is for the log only. */
export class BackendError extends Error {
  override readonly name = 'BackendError'
  readonly fault: Fault
  readonly detail: string | undefined

  constructor(fault: Fault, publicMessage: string, options: { detail?: string; cause?: unknown } = {}) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause })
    this.fault = fault
    this.detail = options.detail
  }
}

/** The mark of a configuration field that is sealed, redacted, and read from a file by the command line. */
export const SECRET_MARK = 'x-secret'

/**
 * The mark of a configuration field that says which upstream is meant. When it changes, no secret of before is kept (it
 * would be sent to whoever is there), and living credentials stand in the way (they could only be ended where they are).
 */
export const UPSTREAM_MARK = 'x-upstream'

/** Adds the mark to the options of a TypeBox value: `Type.String(upstreamField({ description: '…' }))`. */
export function upstreamField<T extends object>(options: T): T & { 'x-upstream': true } {
  return { ...options, [UPSTREAM_MARK]: true }
}

/** Adds the mark to the options of a TypeBox string: `Type.String(secretField({ description: '…' }))`. */
export function secretField<T extends object>(options: T): T & { 'x-secret': true } {
  return { ...options, [SECRET_MARK]: true }
}

/** The mark of a configuration field that says how what is sent to the upstream is kept from others on the way. */
export const PROTECTION_MARK = 'x-protection'

/** Adds the mark to the options of a TypeBox field: when it changes, no secret of before is kept. */
export function protectionField<T extends object>(options: T): T & { 'x-protection': true } {
  return { ...options, [PROTECTION_MARK]: true }
}
