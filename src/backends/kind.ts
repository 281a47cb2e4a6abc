import type { Static, TObject, TSchema } from 'typebox'
import type { Use } from '../domain/use.ts'
import type { FetchOptions } from '../egress/fetch.ts'
import type { Network } from '../egress/network.ts'

/**
 * The interface of a kind of backend. Public as `mayfly/plugin`.
 *
 * A kind talks to one type of upstream. It names what it creates after the credential's id, so that an issue
 * whose outcome is unknown can be undone, and it states truthfully whether it can revoke a credential at once.
 * To add one: a folder with `kind.ts`, its page in docs/backends, a call of `describeKind` (test/contract) and a line in `index.ts`.
 */
export interface Kind<C extends TObject = TObject, P extends TSchema = TSchema> {
  readonly type: string
  readonly title: string
  /**
   * A TypeBox object without additional properties. `secretField()` marks a field that is sealed at rest and shown as
   * `[redacted]`, `upstreamField()` one that selects the upstream, `protectionField()` one that protects secrets, and
   * `guardedField()` one that reaches beyond the backend.
   * Command line and console build a form from it: strings, numbers, integers, booleans, unions of literals, and arrays
   * of strings (or a string or such an array) become flags and questions; any other field can only be given as JSON.
   */
  readonly config: C
  /** Options of one request. Without additional properties. */
  readonly params: P
  /** Lifetimes in ms that the upstream can keep; `why` is shown to the administrator. */
  readonly limits: { readonly minTtlMs?: number; readonly maxTtlMs?: number; readonly why?: string }
  /** `exact`: `open` returns `revoke` and `recover`. `expiry_only`: a credential lasts until the upstream's own expiry. */
  readonly revocation: 'exact' | 'expiry_only'
  /**
   * `none`: what an interrupted issue left behind cannot be found, because only the reply names it; nobody has received it, and
   * it lasts until the upstream's own expiry. `recover` then returns `undefined`. Administrators and the audit see it.
   */
  readonly recovery?: 'none'
  /** Accounts that packages of the upstream make for it: without TLS, only they, root, Mayfly itself and `local_user` get secrets on a loopback address. */
  readonly serviceAccounts?: readonly string[]
  /** Whether issuing reaches an upstream. Without one there is nothing to record beforehand, nor to recover. */
  readonly upstream: boolean
  readonly scopes: {
    /**
     * Whether this kind understands the scope, relative to the backend. Begin with the grammar (`isScope` of
     * `domain/scope.ts`): this must refuse hostile text by itself.
     */
    valid(scope: string): boolean
    /**
     * Whether a backend with this configuration can ever give anything of a valid scope. Where a request names no scopes,
     * those for which this is false are left out, and administrators who grant one are warned. Absent: it always can.
     */
    gives?(config: Static<C>, scope: string): boolean
    /** The forms of a scope, the most useful one first: for examples, forms and completion. */
    readonly forms: readonly ScopeForm[]
    /** The grammar in one or two sentences; callers see it when they ask for a scope that is not valid. */
    readonly help: string
  }
  /**
   * Variables that the programs of this upstream read by themselves, with what they get: `{field}` stands for a field of the
   * credential, `{secret}` for its one value. `{ file }` is written to a private file, and the variable names that. Values are
   * put in as they are: return a file that needs more, such as JSON, as one field. A variable whose field a credential lacks is
   * left out. The command line sets only names that it knows: `cli/frame/conventional-variables.ts`.
   */
  readonly environment?: Readonly<Record<string, string | { readonly file: string }>>
  /** Which of these variables there are for a configuration, and what they get, where that depends on it. Nothing secret. */
  environmentFor?(config: Static<C>): Readonly<Record<string, string | { readonly file: string }>>
  /**
   * Where and how a credential with these scopes is used, for a proxy that holds it (ADR 0070). `scopes`: as granted, relative to
   * the backend. Pure: it reaches nothing, and nothing secret is in it.
   */
  uses?(config: Static<C>, scopes: readonly string[]): readonly Use[]
  /** Fills in omitted fields (a key pair, for example). Mayfly stores the result as the configuration. */
  complete?(config: Static<C>): Promise<Static<C>>
  /** A script for the upstream's own administrator, after which Mayfly's login needs few rights. */
  readonly setup?: {
    /** Fields of the configuration without a default that the script depends on. */
    readonly needs: readonly (keyof Static<C> & string)[]
    /** Throws `RangeError` for names that cannot be written into a script. */
    install(config: Static<C>): string
    uninstall(config: Static<C>): string
  }
  open(config: Static<C>, host: Host): Promise<Backend<Static<P>>>
}

export interface ScopeForm {
  /** `<field>` stands for the text of that field of the configuration, `<database>:read`; any other `<word>` for a name. */
  readonly form: string
  /** What it gives, as the end of a sentence that begins "a credential that may …": `read the tables of a database`. */
  readonly gives: string
}

/** An open backend. Every method throws `BackendError` and nothing else, and stops soon after `signal` fires. */
export type Backend<P = unknown> = Issuing<P> &
  (Revoking | { readonly revoke?: never; readonly recover?: never; readonly list?: never })

interface Issuing<P> extends AsyncDisposable {
  /**
   * Reaches the upstream and changes nothing. Throws when issuing or revoking could not work. Returns sentences that warn
   * the administrator of what works but is dangerous.
   */
  check(signal: AbortSignal): Promise<readonly string[]>
  issue(request: IssueRequest<P>, signal: AbortSignal): Promise<Issued>
  /**
   * Brings up to date what the backend keeps upstream beside its credentials, such as the grants of group roles. Called once
   * a minute while credentials live.
   */
  keepUp?(signal: AbortSignal): Promise<void>
  /** Removes that, once the backend was deleted and its last credential is gone. Idempotent; retried until it succeeds. */
  retire?(signal: AbortSignal): Promise<void>
  /** Public keys of a backend that is an issuer of its own, for its JWKS (RFC 7517 §5). */
  publicKeys?(): readonly Record<string, unknown>[]
  /**
   * A public document by which verifiers that never ask Mayfly learn of revoked credentials (a CRL, a KRL), at `<issuer of the
   * backend>/revoked`. Only for kinds without an upstream. `revoked`: all that have not expired, in no order.
   */
  revocationList?(revoked: readonly RevokedCredential[]): Promise<RevocationList>
  /**
   * A short token for a program that presents a credential of this backend (`Issued.presented`) at `<issuer of the backend>/token`,
   * by the distribution token specification. Only for kinds without an upstream.
   */
  tokenFor?(request: TokenRequest): Promise<ServedToken>
  /** Present where Mayfly can replace the secret that it logs in with itself. */
  readonly rotation?: Rotation
}

export interface TokenRequest {
  readonly credentialId: string
  readonly agent: { readonly id: string; readonly name: string }
  /** Of the credential, relative to the backend. */
  readonly scopes: readonly string[]
  /** As the program sent them: `repository:team/app:pull,push`. Any text. */
  readonly asked: readonly string[]
  /** Epoch ms. */
  readonly now: number
  /** Epoch ms: the token must not last longer. */
  readonly expiresAt: number
}

export interface ServedToken {
  readonly token: string
  /** What it grants, as scopes relative to the backend, for the audit. */
  readonly granted: readonly string[]
}

export interface RevokedCredential {
  readonly credentialId: string
  /** Epoch ms. */
  readonly endedAt: number
}

export interface RevocationList {
  readonly contentType: string
  readonly body: Uint8Array
}

/**
 * Replaces the secrets of the configuration. At every crash point Mayfly's store knows ones that work: it stores the proposal
 * before `adopt`, and forgets the old ones only after `adopt` has returned. Each step may be repeated after a crash, also on an
 * instance that was opened with the proposal.
 */
export interface Rotation {
  /**
   * New values of secret fields, and of what names them, such as the id of an access key. The present ones keep working. Where
   * the upstream makes them, it ends first what an interrupted rotation left behind and is certainly its own.
   */
  propose(signal: AbortSignal): Promise<Readonly<Record<string, string>>>
  /** Makes them valid upstream, and waits until they are: they are tried next. The present ones may end here. */
  adopt(next: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>
  /** Ends the old ones, where they are still valid. Called on an instance that was opened with the new ones. */
  finish?(old: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void>
}

/** One account upstream that carries a name of ours. */
export interface Listed {
  readonly credentialId: string
  /** What `revoke` needs. */
  readonly handle: Handle
  /** Epoch ms, where the upstream says it. */
  readonly expiresAt?: number
}

export interface ListedPage {
  readonly items: readonly Listed[]
  /** Where the next page begins, also after accounts of this one were revoked: a name, no count. Absent on the last one. */
  readonly next?: string
}

/** Both or neither: an account that can be revoked must also be found when the answer to `issue` is lost. */
interface Revoking {
  /** Idempotent: an account that does not exist counts as revoked. */
  revoke(handle: Handle, signal: AbortSignal): Promise<void>
  /**
   * A handle by which `revoke` finds the account, from the credential's id alone: what `issue` returns holds at least as much.
   * Reaches nothing. `undefined` only for kinds whose `recovery` is `none`.
   */
  recover(credentialId: string): Handle | undefined
  /** Accounts upstream whose names are ours, also those of other installations. `after` is the `next` of a page. */
  list?(after: string | undefined, signal: AbortSignal): Promise<ListedPage>
}

/** What revoking needs, as plain JSON; sealed at rest. */
export type Handle = Readonly<Record<string, string | number | null>>

export interface IssueRequest<P> {
  readonly credentialId: string
  readonly agent: { readonly id: string; readonly name: string }
  /** Relative to the backend; granted and `valid`. An empty list grants nothing. */
  readonly scopes: readonly string[]
  readonly params: P
  /** Epoch ms. */
  readonly issuedAt: number
  /** Epoch ms: the upstream's own backstop is set here. */
  readonly expiresAt: number
}

export interface Issued {
  /** The one value that an agent needs. Where there are several, return `fields` instead. */
  readonly secret?: string
  readonly fields?: Readonly<Record<string, string | number>>
  /** The field that its holder presents for `tokenFor`. Mayfly keeps its keyed hash, and nothing else of it. */
  readonly presented?: string
  /** Epoch ms at which the upstream ends the credential, where that differs from the expiry requested. */
  readonly upstreamExpiresAt?: number
  /** Required where the kind can revoke. */
  readonly handle?: Handle
  /** For the audit; never secret. */
  readonly facts?: Readonly<Record<string, string | number>>
}

/** Everything that a kind may use of the server. */
export interface Host extends Network {
  /** The backend's name. */
  readonly name: string
  /** The backend's own id, `be_…`, which no other backend ever has. */
  readonly uid: string
  /** `<issuer>/backends/<name>`: where this backend's own discovery document lives. */
  readonly issuer: string
  /** Epoch ms. */
  now(): number
  /** The setting `upstream_timeout`, in ms: the server abandons a call after this time. */
  readonly timeoutMs: number
  /** `fetch` under the egress rules: no redirects, `timeoutMs` in all, at most 256 KiB unless said, checked addresses. */
  readonly fetch: (url: string, init?: RequestInit, options?: FetchOptions) => Promise<Response>
  /** A JWT of Mayfly's own issuer, signed with its key (RS256). Its `iss` is `issuerUrl`. */
  idToken(claims: IdTokenClaims): Promise<string>
  /** The issuer of the server, without a path of the backend. */
  readonly issuerUrl: string
  /** For an upstream that replaces a secret whenever it is used (refresh tokens, RFC 6749 §6). */
  readonly state: BackendState
  readonly log: {
    warn(fields: Record<string, unknown>, message: string): void
    debug(fields: Record<string, unknown>, message: string): void
  }
}

/**
 * One short text of the backend, sealed at rest, that every node sees and that is gone once the backend was deleted. Throws
 * `BackendError` (`unavailable`) when the store fails.
 */
export interface BackendState {
  /** `undefined`: nothing was written yet. */
  read(): Promise<string | undefined>
  /** Durable once it returns true. False: it is no longer `before`, or may not be; read it again. */
  replace(before: string | undefined, after: string): Promise<boolean>
}

/** For an upstream that trusts Mayfly as an OpenID provider. It verifies the token with the JWKS that Mayfly publishes. */
export interface IdTokenClaims {
  readonly audience: string
  readonly subject: string
  /** Epoch ms; at most twelve hours from now. A few minutes do, except where the upstream makes its token's lifetime of it. */
  readonly expiresAt: number
  /** Further claims; the registered ones (RFC 7519 §4.1) cannot be replaced. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Marks a configuration field that is sealed, redacted, and read from a file by the command line. */
export const SECRET_MARK = 'x-secret'

/**
 * Marks a configuration field that selects the upstream. A change requires the secrets again (they would be sent to
 * another server) and is refused while credentials live (they can only be revoked at the old one).
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

/** Marks a configuration field that protects secrets on their way or from misuse, such as the TLS mode. */
export const PROTECTION_MARK = 'x-protection'

/** Adds the mark to the options of a TypeBox field. A change requires the secrets again. */
export function protectionField<T extends object>(options: T): T & { 'x-protection': true } {
  return { ...options, [PROTECTION_MARK]: true }
}

/** Marks a configuration field that reaches beyond the backend: into the server's network, or to Mayfly's own role. */
export const GUARDED_MARK = 'x-guarded'

/**
 * Adds the mark to the options of a TypeBox field. A configuration with any value but the `safe` ones is stored only for the local
 * host and holders of `admin:*` (ADR 0022). Where Mayfly identifies itself by an id token, the address that it sends the token to
 * needs this mark: no secret has to be entered again when somebody changes it.
 */
export function guardedField<T extends object>(options: T, ...safe: readonly (string | boolean)[]) {
  return { ...options, [GUARDED_MARK]: { safe } }
}
