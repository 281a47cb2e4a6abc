import type { Host, Kind } from '../backends/kind.ts'
import { misconfigured } from '../domain/backend-error.ts'
import { networkOf } from '../egress/fetch.ts'
import { createResolver } from '../egress/resolver.ts'
import type { OpenRequest } from '../plugins/proto/mayfly_plugin_v1_pb.ts'

type About = Pick<OpenRequest, 'name' | 'uid' | 'issuer' | 'issuerUrl' | 'timeoutMs'>

/** Of all backends of this process. */
const lookup = createResolver().addresses

/** What of the server a kind has in a process of its own. */
export function createHost(
  { name, uid, issuer, issuerUrl, timeoutMs: timeout }: About,
  kind: Pick<Kind, 'serviceAccounts'> = {},
  config: Readonly<Record<string, unknown>> = {},
): Host {
  const timeoutMs = Number(timeout)
  const log = { warn: logAt('warn'), debug: logAt('debug') }
  return {
    ...{ name, uid, issuer, issuerUrl, timeoutMs },
    now: () => Date.now(),
    ...networkOf(kind, config, { lookup, timeoutMs, log }),
    idToken: () => absent('id tokens of Mayfly'),
    state: { read: () => absent('a state'), replace: () => absent('a state') },
    log,
  }
}

function absent(what: string): Promise<never> {
  return Promise.reject(misconfigured(`A plugin has no ${what}.`))
}

/** As hclog writes it, which the server reads from our standard error. */
function logAt(level: string) {
  return (fields: Record<string, unknown>, message: string) => {
    const about = { '@level': level, '@message': message, '@timestamp': new Date().toISOString() }
    process.stderr.write(`${JSON.stringify({ ...fields, ...about })}\n`)
  }
}
