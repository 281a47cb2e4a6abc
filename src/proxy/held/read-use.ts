import { Check } from 'typebox/value'
import { Use as UseSchema } from '../../api/uses.ts'
import type { Use as WireUse } from '../../client/wire.ts'
import type { HttpUse, Place, Use } from '../../domain/use.ts'
import { ProxyFailure } from '../failure.ts'

/** The uses of a credential as the server sent them. Throws `ProxyFailure` for what is none: secrets are put where they say. */
export function readUses(backend: string, uses: unknown): Use[] {
  if (!Array.isArray(uses)) throw malformed(backend)
  return uses.map((use: unknown) => {
    if (!Check(UseSchema, use)) throw malformed(backend)
    return readUse(use)
  })
}

/** Names on the wire are those of `domain/use.ts` in snake case. */
function readUse(use: WireUse): Use {
  return use.protocol === 'http' ? { ...use, places: use.places.map(readPlace) } : use
}

function readPlace(
  place: Extract<WireUse, { protocol: 'http' }>['places'][number],
): HttpUse['places'][number] {
  if (place.in === 'body') {
    const { max_bytes: maxBytes, ...rest } = place
    return { ...rest, maxBytes } satisfies Place
  }
  if (place.in !== 'sigv4') return place
  const { key_id: keyId, ...rest } = place
  return { ...rest, keyId } satisfies Place
}

function malformed(backend: string): ProxyFailure {
  return new ProxyFailure(
    'unexpected_reply',
    `The server does not say where credentials of ${backend} are used, or in a form that this version does not know.`,
    'Use the same version of Mayfly here and on the server.',
  )
}
