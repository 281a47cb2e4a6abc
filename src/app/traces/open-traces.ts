import type { Config } from '../../config/config.ts'
import type { Core } from '../../core/context.ts'
import { createEgressFetch } from '../../egress/fetch.ts'
import type { Resolver } from '../../egress/resolver.ts'
import type { Log } from '../../log/log.ts'
import { VERSION } from '../version.ts'
import type { Traces } from './traces.ts'

const TIMEOUT_MS = 5_000

/** Loaded only where a receiver is configured. It may be in the network of the server: the operator named it. */
export async function openTraces(config: Config, resolver: Resolver, log: Log): Promise<Traces | undefined> {
  const { otlpEndpoint: endpoint } = config
  if (endpoint === undefined) return undefined
  const { createTraces } = await import('./traces.ts')
  const options = { local: true, lookup: resolver.addresses, timeoutMs: TIMEOUT_MS }
  const fetch = createEgressFetch({ ...options, checkListener: async () => undefined })
  return createTraces({ endpoint, version: VERSION, fetch, log })
}

export const traced = (traces: Traces | undefined): Partial<Pick<Core, 'trace'>> =>
  traces === undefined ? {} : { trace: traces.trace }
