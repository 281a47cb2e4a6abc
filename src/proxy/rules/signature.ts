import type { Place } from '../../domain/use.ts'
import { isSigningName } from '../../domain/use-rules.ts'
import type { Placeholder } from './asked.ts'
import { isFor, oneHeader, oneParameter, type Sought } from './places.ts'
import type { Reason } from './refusals.ts'

/** A signature of AWS by a placeholder: what must be signed anew. */
export interface Signature {
  readonly placeholder: Placeholder
  readonly service: string
  /** Headers, by index, and ranges of the target that may hold placeholders: `sign/` writes them all. */
  readonly headers: ReadonlyMap<number, string>
  readonly target: readonly { readonly from: number; readonly to: number }[]
}

type SigV4 = Place & { readonly in: 'sigv4' }

/** The algorithm, then its three parts in any order. No character can be matched in two ways, or a long value would take for ever. */
const CREDENTIAL = /^AWS4-HMAC-SHA256 (?:[^,]*,)*? *Credential=([^,\s]+)/

/** Undefined: no placeholder signed it. The scope is `id/date/region/service/aws4_request`. */
export function readSignature(place: SigV4, sought: Sought): Signature | Reason | undefined {
  const header = oneHeader(sought, 'authorization')
  const inHeader = header && keyOf(CREDENTIAL.exec(header.value)?.[1] ?? '', place, sought)
  const parameter = oneParameter(sought.target, 'X-Amz-Credential')
  const inQuery = parameter && keyOf(parameter.value, place, sought)
  const signed = inHeader ?? inQuery
  if (signed === undefined) return undefined
  if (inHeader !== undefined && inQuery !== undefined) return 'bad_signature'
  const { service, placeholder } = signed
  if (service === undefined) return 'bad_signature'
  if (place.deny.includes(service)) return 'service_not_allowed'
  if (place.allow !== undefined && !place.allow.includes(service)) return 'service_not_allowed'
  return { placeholder, service, ...spotsOf(place, sought, inHeader !== undefined) }
}

function keyOf(credential: string, place: SigV4, { search }: Sought) {
  const [id = '', date, region, service = '', end, ...more] = credential.split('/')
  const placeholder = search.named(id)
  if (!isFor(placeholder, place.keyId)) return undefined
  const isScope = /^\d{8}$/.test(date ?? '') && region !== undefined && end === 'aws4_request'
  const isRead = isScope && more.length === 0 && isSigningName(service)
  return { placeholder, service: isRead ? service : undefined }
}

function spotsOf(place: SigV4, sought: Sought, signedInHeader: boolean) {
  const { asked, read, target, search } = sought
  const headers = new Map<number, string>()
  const ranges: { from: number; to: number }[] = []
  const cover = (name: string, isSpot: (value: string) => boolean) => {
    const header = oneHeader({ asked, read }, name.toLowerCase())
    if (header !== undefined && isSpot(header.value)) headers.set(header.index, '')
    const parameter = oneParameter(target, name)
    const offset = target.path.length + 1
    if (parameter !== undefined && isSpot(parameter.value)) {
      ranges.push({ from: offset + parameter.from, to: offset + parameter.to })
    }
  }
  cover(
    'X-Amz-Security-Token',
    (value) => place.token !== undefined && isFor(search.named(value), place.token),
  )
  if (signedInHeader) {
    const { index, value } = oneHeader({ asked, read }, 'authorization') ?? { index: -1, value: '' }
    const credential = CREDENTIAL.exec(value)?.[1] ?? ''
    headers.set(
      index,
      value.replace(credential, () => ''),
    )
  } else cover('X-Amz-Credential', () => true)
  return { headers, target: ranges }
}
