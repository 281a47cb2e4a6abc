import type { ProxySettings } from '../../proxy/types.ts'
import { readDuration } from '../frame/duration.ts'
import { usage } from '../frame/failure.ts'
import { choice, many, text, type ValuesOf } from '../frame/options.ts'
import {
  LEAST_IDLE_MS,
  MOST_IDLE_MS,
  ON_MISUSE,
  OTHERS,
  type ProxyWish,
  readTunnel,
  settingsOf,
} from '../project-file/proxy-wish.ts'

/** What `run --proxy` and `proxy` have in common. */
export const PROXY_OPTIONS = {
  others: choice(
    '<what>',
    'with a proxy: what happens to requests for hosts of no backend; default: inspect, which forwards them and refuses placeholders',
    OTHERS,
  ),
  tunnel: many(
    '<host>',
    'with a proxy: a host, or *.example.com, whose TLS is not opened, for clients that pin certificates; may be repeated',
  ),
  onMisuse: choice(
    '<what>',
    'with a proxy: what a placeholder does that is sent where it does not belong; default: refuse, which refuses the request',
    ON_MISUSE,
  ),
  idleTimeout: text(
    '<duration>',
    'with a proxy: time after which a stream on which nothing moves is broken; default: 10m',
  ),
}

export type ProxyOptionValues = ValuesOf<typeof PROXY_OPTIONS>

export async function wishOfFlags({
  others,
  tunnel,
  onMisuse,
  idleTimeout,
}: ProxyOptionValues): Promise<ProxyWish> {
  const names = tunnel === undefined ? undefined : readTunnel(tunnel)
  if (tunnel !== undefined && names === undefined)
    throw usage('--tunnel takes a host name.', 'Example: --tunnel "*.example.com".')
  const idleMs =
    idleTimeout === undefined
      ? undefined
      : await readDuration('--idle-timeout', idleTimeout, MOST_IDLE_MS, LEAST_IDLE_MS)
  return {
    ...(others !== undefined && { others }),
    ...(names !== undefined && { tunnel: names }),
    ...(onMisuse !== undefined && { onMisuse }),
    ...(idleMs !== undefined && { idleMs }),
  }
}

/** The settings of the proxy of a command; undefined: it gets none. `proxy`: what --proxy and --no-proxy say. */
export async function proxyOfCommand(
  options: ProxyOptionValues & { readonly proxy?: boolean | undefined },
  ofProject: ProxyWish | undefined,
): Promise<ProxySettings | undefined> {
  const ofFlags = await wishOfFlags(options)
  if (options.proxy !== false && (options.proxy === true || ofProject !== undefined))
    return settingsOf(ofProject, ofFlags)
  if (Object.keys(ofFlags).length > 0)
    throw usage('--others, --tunnel, --on-misuse and --idle-timeout are for a proxy.', 'Add --proxy.')
  return undefined
}
