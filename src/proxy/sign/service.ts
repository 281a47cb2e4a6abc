import type { Refused } from '../rules/asked.ts'
import type { Signed } from './read-signed.ts'
import type { SigV4Place } from './sign-anew.ts'

const REFUSED: Refused = { kind: 'refuse', reason: 'service_not_allowed' }
const REGION = /^(?:[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}|us-gov|aws-global)$/
/** `GetDataAccess` of S3 Access Grants: answers with keys, and is signed for `s3` (S3 API Reference). */
const GIVES_KEYS = /^\/+v20180820\/+accessgrantsinstance\/+dataaccess\/*(?:\?|$)/i

/**
 * Whether the service in the scope may be called: AWS takes a signature only where its service is called. undefined: it may.
 * `host`: where the request goes.
 */
export function checkService({
  target,
  signed,
  place,
  host,
}: {
  readonly target: string
  readonly signed: Pick<Signed, 'service'>
  readonly place: SigV4Place
  readonly host: string
}): Refused | undefined {
  const service = signed.service.toLowerCase()
  const denied = new Set(place.deny.map((name) => name.toLowerCase()))
  if (denied.has(service)) return REFUSED
  if (place.allow !== undefined && !place.allow.some((name) => name.toLowerCase() === service)) return REFUSED
  const endpoint = endpointOf(host)
  if (endpoint !== service && denied.has(endpoint)) return REFUSED
  return service === 's3' && GIVES_KEYS.test(target) ? REFUSED : undefined
}

/** What the host says of the service: `sts` of `sts.eu-west-1.amazonaws.com` and of `sts-fips.us-east-1.amazonaws.com`. */
function endpointOf(host: string): string {
  const name = host.toLowerCase().replace(/:\d+$/, '')
  const labels = name.replace(/\.(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|api\.aws|on\.aws)$/, '').split('.')
  if (labels.join('.') === name) return ''
  const last = labels.filter((label) => !REGION.test(label) && label !== 'dualstack').at(-1) ?? ''
  return last.replace(/-fips$/, '')
}
