import type { HttpUse, Place } from '../../domain/use.ts'
import type { Held, Live } from '../types.ts'
import type { Reason } from './refusals.ts'

/** A request as it arrived, and what the rules say of it. */

export type Header = readonly [name: string, value: string]

export interface Asked {
  /** Where it would be sent: the target of CONNECT, or of a base URL its upstream. Canonical `host:port` (`domain/network/authority.ts`). */
  readonly authority: string
  /** Of the upstream. */
  readonly scheme: 'https' | 'http'
  readonly method: string
  /** As sent, byte for byte (latin1): `/path?query`, or the absolute form. */
  readonly target: string
  /** As received, in order (latin1), without pseudo-headers. */
  readonly headers: readonly Header[]
  /** Of HTTP/2 (`readHttp2`): the request needs no `Host`, and may not have headers of a connection. */
  readonly http2?: { readonly authority: string | undefined }
  /** At a base URL: what `Host` must say in place of `authority`, as `127.0.0.1:41213`. */
  readonly listener?: readonly string[]
  /** At a base URL: whose it is. It decides where no placeholder does. */
  readonly site?: Known
}

export interface Known {
  readonly held: Held
  readonly use: HttpUse
}

/** A placeholder that stands in a request. */
export interface Placeholder {
  readonly held: Held
  /** `''` is the one value. Several, where fields of one credential have one value. */
  readonly fields: readonly string[]
  /** For the record: `<held>.<field>`, or `<held>`. Never its value. */
  readonly name: string
}

/** What is sent. */
export interface Applied {
  /** Origin form. */
  readonly target: string
  /**
   * Without headers of a connection (those of an accepted upgrade excepted) and without those for a proxy; `Host` is the
   * authority. `Content-Length` is there if it was sent, `Transfer-Encoding` never is.
   */
  readonly headers: readonly Header[]
}

interface Allowed extends Known {
  /** The path with only ids replaced, for the record. */
  readonly template: string
  /** What the request asks the connection to become. */
  readonly upgrade: Upgrade | null
}

export type Upgrade = 'websocket' | 'spdy/3.1'

export interface Inject extends Allowed {
  readonly kind: 'inject'
  readonly places: readonly Place[]
  /** Those that are replaced: all of one credential. */
  readonly placeholders: readonly [Placeholder, ...Placeholder[]]
  apply(live: Live): Applied | Refused
}

/** The secret may stand in the body: read at most `maxBytes` of it; refuse longer ones as `body_too_large`. */
export interface InjectBody extends Allowed {
  readonly kind: 'inject_body'
  readonly maxBytes: number
  /** Looks for a placeholder. Without one the request is forwarded as `clean` and the body as they are. */
  readBody(body: Buffer): InjectIntoBody | Refused | null
  clean(): Applied
}

/** `held` may be another than that of the verdict, where two backends have one authority. */
export interface InjectIntoBody extends Known {
  readonly placeholder: Placeholder
  /** `headers` has the new `Content-Length`. */
  apply(live: Live): (Applied & { readonly body: Buffer }) | Refused
}

/** Signed anew by `sign/`. `clean` has the placeholders in it; `sign/` writes all headers and parameters that hold them. */
export interface Sign extends Allowed {
  readonly kind: 'sign'
  readonly place: Place & { readonly in: 'sigv4' }
  readonly placeholder: Placeholder
  /** Signing name in the scope of the request: `s3`. */
  readonly service: string
  clean(): Applied
}

/** No placeholder is in it. `use` and `held` are undefined, and `template` null, where no backend has the authority. */
export interface Forward {
  readonly kind: 'forward'
  readonly held: Held | undefined
  readonly use: HttpUse | undefined
  readonly template: string | null
  readonly upgrade: Upgrade | null
  clean(): Applied
}

export interface Refused {
  readonly kind: 'refuse'
  readonly reason: Reason
  /** Undefined where it is not known whose the request was. */
  readonly held?: Held
  /** The placeholder stood where it must not: `placeholder.misused`. */
  readonly misused?: Placeholder
}

export type Verdict = Inject | InjectBody | Sign | Forward | Refused
