import type { Socket } from 'node:net'
import type { HttpUse } from '../../domain/use.ts'
import type { Authority, Cuts, Held, OtherAuthorities, ProxyLog, Recorder, Site } from '../types.ts'

/** What the HTTP data path is made of. */
export interface TrafficParts extends OtherAuthorities {
  /** All credentials of the run. The same array as long as none was added. */
  held(): readonly Held[]
  readonly authority: Authority
  readonly cuts: Cuts
  readonly recorder: Recorder
  readonly log: ProxyLog
  /** Of `egress/resolver.ts`. */
  readonly resolver: { addresses(hostname: string): Promise<readonly string[]> }
  /** Mayfly is reached over loopback or `admin.sock`: a backend's own loopback address may be connected to. */
  readonly isLocal: boolean
  /** `host:port` of Mayfly itself, each way that it is reached: never an upstream. */
  readonly ownServer: readonly string[]
  /** Users whose processes may connect; `any` where the network namespace is the border. Default: the user of this process. */
  readonly uids?: readonly number[] | 'any' | undefined
  /** Address that the listeners bind, and by which clients reach them. Default 127.0.0.1. */
  readonly listen?: { readonly host: string } | undefined
  /** A stream on which nothing moves for so long is broken. Default 10 minutes. */
  readonly idleMs?: number | undefined
  /** Opens a TCP connection to a checked address; default: `node:net`. */
  readonly connect?: ((address: string, port: number) => Socket) | undefined
  /** A placeholder was sent where it does not belong. Called after the request was refused and recorded. */
  onMisuse(held: Held): void
  /** Epoch ms. */
  now(): number
}

export interface SiteOptions {
  /** Serve https with a leaf of the run's authority; default false. */
  readonly tls?: boolean
}

/** The HTTP data path of one run. */
export interface Traffic {
  /** A listener that stands for the origin of this use. `url` has no trailing slash. */
  openSite(held: Held, use: HttpUse, options?: SiteOptions): Promise<Site>
  /** A listener for `HTTPS_PROXY`, by default on a free port. The URL carries the login of the run: `http://mayfly:…@127.0.0.1:41213`. */
  openForward(options?: { readonly port?: number }): Promise<{ readonly url: string }>
  /** Stops listening and destroys every connection. */
  close(): Promise<void>
}
