import { IdentityRefused, type ProvenWorkload, type Trusted } from '../domain/identity/identity.ts'
import type { AddressLookup } from '../egress/address.ts'
import type { ListenerRules } from '../egress/listener.ts'

/** What proving a workload needs of this machine. */
export interface IdentityWays {
  readonly lookup: AddressLookup
  readonly timeoutMs: number
  readonly log: ListenerRules['log']
  /** The server's clock, epoch ms. */
  readonly now: () => number
}

/** Trusts nobody until `setTrusted`, and connects to nobody before a token asks for it. */
export function createIdentities(_ways: IdentityWays) {
  let trusted: Trusted = { identities: [], platforms: [] }
  return {
    setTrusted: (next: Trusted): void => {
      trusted = next
    },
    trusted: () => trusted,
    prove: async (_token: string): Promise<ProvenWorkload> => {
      throw new IdentityRefused('unknown_issuer')
    },
  }
}
