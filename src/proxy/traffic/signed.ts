import type { Sign } from '../rules/asked.ts'
import { hashOf } from '../sign/canonical.ts'
import { checkSignature } from '../sign/check-signature.ts'
import { readSigned } from '../sign/read-signed.ts'
import { checkService } from '../sign/service.ts'
import { MAX_HASHED_BODY, signAnew } from '../sign/sign-anew.ts'
import { readWhole } from './body.ts'
import { Failure } from './failure.ts'
import type { Inbound } from './inbound/inbound.ts'
import type { Line } from './line.ts'
import { liveOf, maskOf, type Prepared } from './prepared.ts'

/** A request of AWS is signed anew: over the body where the signature covers it. */
export async function signedAnew(verdict: Sign, inbound: Inbound, line: Line): Promise<Prepared> {
  const { held, use, upgrade, place, placeholder } = verdict
  const live = liveOf(held, line, placeholder.name)
  const clean = verdict.clean()
  const request = { method: inbound.method, ...clean }
  const signed = readSigned(request)
  if ('kind' in signed) throw new Failure(signed.reason, { held })
  const host = clean.headers.find(([name]) => name.toLowerCase() === 'host')?.[1] ?? ''
  const refused = checkService({ target: clean.target, signed, place, host })
  if (refused !== undefined) throw new Failure(refused.reason, { held })
  const isHashed = signed.payload.kind === 'hashed'
  const tooLarge = new Failure('body_too_large', { held })
  const body = isHashed && inbound.hasBody ? await readWhole(inbound, MAX_HASHED_BODY, tooLarge) : undefined
  const bodyHash = isHashed ? hashOf(body ?? '') : undefined
  const { placeholders } = held
  const received = { method: inbound.method, target: clean.target, headers: receivedHeaders(inbound) }
  const claim = checkSignature({ ...received, signed, place, placeholders, bodyHash })
  if ('kind' in claim) throw new Failure(claim.reason, { held })
  const anew = signAnew({ request, signed, place, live, placeholders, host, bodyHash, claim })
  if (anew.kind === 'refuse') throw new Failure(anew.reason, { held })
  line.decision = 'injected'
  const { target, headers, body: through } = anew
  return { target, headers, use, upgrade, body: body ?? 'stream', through, live, mask: maskOf(live) }
}

/** HTTP/2 signs `:authority` as `host`. */
function receivedHeaders({ headers, http2 }: Inbound): Inbound['headers'] {
  const hasHost = headers.some(([name]) => name.toLowerCase() === 'host')
  return hasHost || http2?.authority === undefined ? headers : [...headers, ['host', http2.authority]]
}
