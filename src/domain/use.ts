/**
 * Where and how a credential is used: what a proxy must know to put a secret into a request of somebody who does not hold it
 * (ADR 0070). A kind says it as data, an administrator may name more of it on a backend, and the reply to an issue carries it.
 * Nothing here is secret, and nothing else of a backend's configuration becomes visible.
 */
export type Use = HttpUse | DatabaseUse

export interface HttpUse {
  readonly protocol: 'http'
  /** Of this use, among those of a backend: `api`, `git`, `registry`, `s3`. */
  readonly name: string
  /**
   * `https://api.github.com`: scheme, host and, where it is not the scheme's, port. Nothing is put into plain HTTP unless `local`.
   * The host of a SigV4 use may begin with `*.`, which stands for one or more labels: `https://*.amazonaws.com`.
   */
  readonly origin: string
  /** The upstream is on this machine or in its own network: permits loopback and private addresses. */
  readonly local: boolean
  /** PEM of the authorities to trust in place of the system's. */
  readonly ca?: string
  /** Accounts that may listen on a loopback address, besides root and the one of the proxy (ADR 0041). */
  readonly accounts?: readonly string[]
  /** Where the secret may stand. A placeholder anywhere else is refused. */
  readonly places: readonly Place[]
  /** What may be called with the secret. What no rule names is refused. */
  readonly allow: readonly Rule[]
  /** Refused although `allow` names it. */
  readonly deny: readonly Rule[]
}

/** `field`: which field of the credential; absent: its one value. */
export type Place = { readonly field?: string } & (
  | {
      /** The whole value of the header, or what follows its first word: `Bearer …`, `token …`. */
      readonly in: 'header'
      readonly name: string
    }
  /** The user or the password of Basic authentication (RFC 7617). */
  | { readonly in: 'basic' }
  /** The whole value of a query parameter. */
  | { readonly in: 'query'; readonly name: string }
  /** A part of a path segment: `/bot…/sendMessage`. */
  | { readonly in: 'path' }
  /** The whole value of a field of a form, or of a top-level string of a JSON object, in a body of at most `maxBytes`. */
  | { readonly in: 'body'; readonly name: string; readonly maxBytes: number }
  /**
   * AWS Signature Version 4: the request is signed anew. `field` names the secret key; `keyId` and `token` name the fields with
   * the id of the key and the session's token. The service in the signing scope decides.
   */
  | {
      readonly in: 'sigv4'
      readonly keyId: string
      readonly token?: string
      /** Signing names, as `s3`. `allow` absent: all that are not denied. */
      readonly allow?: readonly string[]
      readonly deny: readonly string[]
    }
)

export interface Rule {
  /** `*` alone: every method. */
  readonly methods: readonly string[]
  /**
   * A pattern of the path: `/repos/acme/shop/**`. `*` stands for one segment, or for a part of one; `**`, only as the last
   * segment, for any number of them, also none. Anything else stands for itself, decoded.
   */
  readonly path: string
  /** `%2F` and `//` are permitted, as part of one segment: `@scope%2Fname` of npm. */
  readonly slashes?: boolean
  /** Of an `allow`: upper and lower case are the same upstream. A `deny` is always compared so. */
  readonly caseless?: boolean
  /** An administrator named it on the backend: looked at before those of the kind. */
  readonly named?: boolean
}

export interface DatabaseUse {
  readonly protocol: 'postgres' | 'mysql' | 'redis'
  readonly name: string
  readonly host: string
  readonly port: number
  readonly local: boolean
  /** As the backend connects: `disable`, `require` (encrypted, not verified) or `verify-full`. */
  readonly tls: 'disable' | 'require' | 'verify-full'
  readonly ca?: string
  /** Accounts that may listen on a loopback address, besides root and the one of the proxy (ADR 0041). */
  readonly accounts?: readonly string[]
  /** The only databases that a client may name; absent: any that the credential opens. */
  readonly databases?: readonly string[]
}

/** What an administrator names on a backend, beside what its kind says. */
export interface UseRules {
  /** Where a kind cannot know it. */
  readonly uses?: readonly HttpUse[]
  /** `use`: the name of one; absent: all. Permits also what the kind denies. */
  readonly allow?: readonly (Rule & { readonly use?: string })[]
  readonly deny?: readonly (Rule & { readonly use?: string })[]
  /** Signing names of AWS that are permitted although the kind denies them. */
  readonly services?: readonly string[]
}
