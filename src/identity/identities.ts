import { type AnyEntry, entriesOf, type ProvenWorkload, type Trusted } from '../domain/identity/identity.ts'
import type { IdentityWays } from './documents.ts'
import { createIssuers, type Issuers, idOfSource, type Source } from './issuers.ts'
import { type Held, prove } from './prove.ts'

/** Trusts nobody until `setTrusted`, and connects to nobody before a token asks for it. */
export function createIdentities(ways: IdentityWays) {
  let trusted: Trusted = { identities: [], platforms: [] }
  let held: readonly Held[] = []
  let issuers: ReadonlyMap<string, Issuers> = new Map()
  return {
    setTrusted: (next: Trusted): void => {
      const kept = new Map<string, Issuers>()
      const hold = (entry: AnyEntry): Held => {
        const source = sourceOf(entry)
        const id = idOfSource(source)
        const found = kept.get(id) ?? issuers.get(id) ?? createIssuers(source, ways)
        kept.set(id, found)
        return { entry, issuers: found }
      }
      held = entriesOf(next).map(hold)
      issuers = kept
      trusted = next
    },
    trusted: () => trusted,
    prove: (token: string): Promise<ProvenWorkload> => prove(token, held, ways.now()),
  }
}

function sourceOf(entry: AnyEntry): Source {
  if (entry.kind === 'identity') {
    const { issuer: rule, keys, tokenReview } = entry.identity
    return { rule, keys, tokenReview }
  }
  const { issuer, keys } = entry.platform
  return { rule: { kind: 'issuer', issuer }, keys, tokenReview: undefined }
}
