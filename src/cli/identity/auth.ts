import type { TokenCache } from '../../client/access-tokens.ts'
import type { Auth } from '../../client/log-in.ts'

/** A login by a token that somebody else signs, and what this command knows of it. */
export interface IdentityAuth extends Extract<Auth, { kind: 'identity' }> {
  /** Its name, as `--identity` takes it. */
  readonly source: string
  readonly title: string
  /** Whom the tokens are for. */
  readonly audience: string
  /** The same in all processes of this job or workload at this server, and in no others. Not secret. */
  readonly key: string
  /** The file that keeps the access token for them. */
  readonly file: string
  readonly tokens: TokenCache
}

/** How this command logs in. */
export type LoginAuth = Exclude<Auth, { kind: 'identity' }> | IdentityAuth
