import type { IssuedCredential } from '../../client/wire.ts'
import type { Use } from '../../domain/use.ts'
import type { Site } from '../types.ts'

/** Where the child reaches one database. */
export interface ReachedDatabase {
  readonly use: Exclude<Use, { readonly protocol: 'http' }>
  /** A directory with a socket, or an address. */
  readonly host: string
  readonly port: number
}

export interface Ways {
  readonly uses: readonly Use[]
  /** By field; `''` is the one value. */
  readonly placeholders: ReadonlyMap<string, string>
  /** Of this credential. */
  readonly sites: readonly Site[]
  readonly databases: readonly ReachedDatabase[]
  /** PEM of the authority of the run, for what is given an https address. */
  readonly certificate: string
}

/** The credential that the child gets: each secret is its placeholder, and each address leads to the proxy. */
export function placeholderCredential(
  _issued: IssuedCredential,
  _ways: Ways,
): IssuedCredential & { readonly token: string } {
  throw new Error('not built yet')
}
