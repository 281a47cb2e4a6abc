import type { Identity, Platform } from '../domain/identity/identity.ts'
import type { Secret } from '../domain/secret.ts'
import type { ConfiguredReceiver } from './notify.ts'
import type { SETTINGS } from './settings.ts'
import type { ConfiguredSso } from './sso.ts'

export type MasterKeySource =
  | { readonly from: 'file'; readonly file: string }
  | { readonly from: 'environment'; readonly text: Secret }
  | { readonly from: 'command'; readonly argv: readonly string[] }

type Camel<S extends string> = S extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : S
type Bare<S extends string> = S extends `limits.${infer Name}`
  ? Name
  : S extends `${infer Section}.${infer Name}`
    ? `${Section}_${Name}`
    : S
type CodeName<K extends string, U> = U extends 'ms' ? `${Camel<Bare<K>>}Ms` : Camel<Bare<K>>

/** The parsed settings by their names in the code: `limits.max_connections` is `maxConnections`, `runs.max` is `runsMaxMs`. */
export type Values = {
  readonly [K in keyof typeof SETTINGS as CodeName<K, (typeof SETTINGS)[K]['unit']>]: ReturnType<
    (typeof SETTINGS)[K]['parse']
  >
}

/** Settings that `Config` holds in another form. */
type Combined =
  | 'issuer'
  | 'signingDomain'
  | 'tlsCertFile'
  | 'tlsKeyFile'
  | 'databaseUrl'
  | 'databaseUrlFile'
  | 'masterKey'
  | 'masterKeyFile'
  | 'masterKeyCommand'
  | 'shutdownTimeoutMs'
  | 'pluginDir'
  | 'pluginEnv'
  | 'notify'
  | 'sso'
  | 'identities'
  | 'platforms'

/** The configuration, checked. `…Ms` is milliseconds; a retention of 0 keeps everything. */
export interface Config extends Omit<Values, Combined> {
  /** No trailing slash. */
  readonly issuer: string
  readonly signingDomain: string
  readonly shutdownTimeoutMs: number
  readonly pluginDir: string
  /** The variables that plugins get, as far as they are set. */
  readonly pluginEnv: Readonly<Record<string, Secret>>
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  /** Undefined: SQLite in `dataDir`. */
  readonly databaseUrl: Secret | undefined
  readonly masterKey: MasterKeySource
  /** The receivers of notifications. */
  readonly notify: readonly ConfiguredReceiver[]
  /** The providers of single sign-on. */
  readonly sso: readonly ConfiguredSso[]
  /** Whose tokens workloads log in with. */
  readonly identities: readonly Identity[]
  /** Whose agents enter without rights. */
  readonly platforms: readonly Platform[]
}
