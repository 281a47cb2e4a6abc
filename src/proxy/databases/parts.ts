import type { Socket } from 'node:net'
import type { DatabaseUse } from '../../domain/use.ts'
import type { Resolver } from '../../egress/resolver.ts'
import type { Cuts, Held, Live, ProxyLog, Recorder } from '../types.ts'
import type { Change } from './copy.ts'
import type { Refusal } from './refusal.ts'

export interface DatabaseParts {
  readonly held: Held
  readonly use: DatabaseUse
  /** Absolute, mode 0700, short: the path of a Unix socket has at most 107 bytes. Several databases may share it. */
  readonly directory: string
  readonly cuts: Pick<Cuts, 'track'>
  readonly recorder: Recorder
  readonly resolver: Pick<Resolver, 'addresses'>
  /**
   * Whose connections to the port are accepted. `any`: where the network namespace is the border. Default: our own. Where another
   * user than ours is among them, the child is told of the port alone: the socket is of no use to it.
   */
  readonly uids?: readonly number[] | 'any'
  /** Address of the port; default: 127.0.0.1. On another one nobody says whose a connection is: then `uids` has to be `any`. */
  readonly host?: string
  /** All credentials of the run: one of their placeholders as the password of another one is a misuse. */
  readonly all?: () => readonly Held[]
  /** The held credential whose placeholder was misused. */
  readonly onMisuse?: (held: Held) => void
  /** Whether Mayfly is reached over loopback: only then may an upstream have a loopback address. */
  readonly isLocal: boolean
  readonly log: ProxyLog
  /** Epoch ms. */
  readonly now?: () => number
  /** Connections at the same time. */
  readonly most?: number
  readonly times?: Partial<Times>
}

export interface Times {
  /** For the child to say who it is. */
  readonly loginMs: number
  /** For the upstream to connect, and to accept the login. */
  readonly upstreamMs: number
  /** How long the upstream may be silent once the child has sent its last byte. */
  readonly lingerMs: number
}

/** Where the child finds the database. */
export interface OpenedDatabase {
  /** The directory of the socket (PostgreSQL), `localhost` (MySQL: its libraries take the socket then) or 127.0.0.1 (Redis). */
  readonly host: string
  /** Of the socket's name (PostgreSQL), else the port on 127.0.0.1. */
  readonly port: number
  readonly socket: string
  /** For clients that cannot use the socket. It asks for the password. */
  readonly tcpPort: number
  /** The placeholder. The port asks for it, the socket does not. */
  readonly password: string
  /** What stands in the credential that the child gets, by field; `url` names the port. */
  readonly fields: Readonly<Record<string, string | number>>
  readonly variables: Readonly<Record<string, string>>
  /** Ends its listeners and every connection. */
  close(): Promise<void>
}

/** One connection of the child, from its first byte to its end. */
export interface Visit {
  readonly child: Socket
  /** It came over the port, and has to show the placeholder. */
  readonly provesItself: boolean
  readonly placeholder: string
  readonly use: DatabaseUse
  readonly times: Times
  /** The credential for this connection, from now on tracked by it. Throws `Refusal`. */
  admit(): Live
  /** A connection to the checked address. Throws `Refusal`. `givesLogin`: what is sent shows the login to whoever listens. */
  connect(options: { readonly givesLogin: boolean }): Promise<Socket>
  /** TLS over it, as the use says. Throws `Refusal`. */
  secure(raw: Socket): Promise<Socket>
  /** For a child with another password than the placeholder: `isIt` says whether it is this one. */
  refuseLogin(isIt: (placeholder: string) => boolean): Refusal
  /** What is recorded of it, once the login upstream begins: `injected`, or `forwarded` where nothing secret is sent. */
  decide(decision: 'injected' | 'forwarded'): void
  /** Copies in both directions until both have ended. `change` sees what the child sends, and may throw `Refusal`. */
  join(upstream: Socket, change?: Change): Promise<void>
}

/** Talks to the child in its own language, errors before the login included. Throws `Refusal` only to have it recorded. */
export type Protocol = (visit: Visit) => Promise<void>
