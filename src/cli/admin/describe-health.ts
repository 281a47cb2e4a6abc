import type { BackendHealth } from '../../client/wire.ts'
import { relative } from '../frame/times.ts'

/** `down: refused`. Servers before 0.3 do not say. */
export function healthInShort(health: BackendHealth | undefined): string {
  if (health === undefined) return ''
  const { state, last_failure_reason: reason } = health
  return state === 'down' && reason !== null ? `down: ${reason}` : state
}

/** The lines of a listing. */
export function describeHealth(
  health: BackendHealth | undefined,
  now: number,
): Record<string, string | undefined> {
  if (health === undefined) return {}
  const { state, last_success: success, last_failure: failure, last_failure_reason: reason } = health
  const { issuing, revoking } = health.breakers
  const stopped = [
    issuing === 'closed' ? '' : `issuing ${issuing}`,
    revoking === 'closed' ? '' : `revoking ${revoking}`,
  ]
  return {
    health: state,
    'last success': success === null ? undefined : relative(success, now),
    'last failure': failure === null ? undefined : `${relative(failure, now)}: ${reason ?? 'failed'}`,
    'failure says': health.last_failure_detail,
    breakers: stopped.filter((one) => one !== '').join(', ') || undefined,
    'secret since': health.secret_since === undefined ? undefined : relative(health.secret_since, now),
  }
}
