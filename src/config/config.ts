import type { Rate } from '../domain/policy.ts'
import type { Secret } from '../domain/secret.ts'
import type { SigningIdentity } from '../domain/signing-identity.ts'
import type { ConfiguredPolicy } from './policies.ts'

export type MasterKeySource =
  | { readonly from: 'file'; readonly file: string }
  | { readonly from: 'environment'; readonly text: Secret }
  | { readonly from: 'command'; readonly argv: readonly string[] }

/** The configuration, checked. `…Ms` is milliseconds. */
export interface Config {
  readonly listen: { readonly host: string; readonly port: number }
  readonly unixSocket: string | undefined
  /** No trailing slash. */
  readonly issuer: string
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly localAdmin: 'auto' | 'off'
  /** CIDR, always with a prefix length. */
  readonly trustedProxies: readonly string[]
  readonly dataDir: string
  /** Undefined: SQLite in `dataDir`. */
  readonly databaseUrl: Secret | undefined
  readonly masterKey: MasterKeySource
  /** 0 keeps for ever. */
  readonly retentionMs: number
  readonly signingDomain: string
  readonly signingIdentity: SigningIdentity
  readonly signingKeyExport: boolean
  readonly accessTokenTtlMs: number
  readonly audiences: readonly string[]
  readonly policies: readonly ConfiguredPolicy[]
  readonly limits: {
    readonly tokenFailuresPerMinute: number
    readonly enrollmentsPerMinute: number
    readonly maxPendingEnrollments: number
    readonly maxActivePerAgent: number
    readonly issueRate: Rate | undefined
    readonly maxConnections: number
  }
  readonly issueByGet: boolean
  readonly revokeUndelivered: boolean
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  readonly logFormat: 'json' | 'pretty'
  readonly accessLog: boolean
  readonly shutdownTimeoutMs: number
  readonly upstreamTimeoutMs: number
  readonly quickstart: boolean
}
