import type { Held } from '../types.ts'
import type { Asked, Verdict } from './asked.ts'
import { createPlaceholderSearch, type PlaceholderSearch } from './placeholders.ts'

export interface Rules {
  decide(asked: Asked): Verdict
  /** For every placeholder of the run, those of databases, too. */
  readonly search: PlaceholderSearch
  /** Whether a credential of the run is for this canonical `host:port`. */
  isKnown(scheme: 'https' | 'http', authority: string): boolean
}

/** Made anew when the run holds others; a renewed credential is not another. */
export function createRules(held: readonly Held[]): Rules {
  const search = createPlaceholderSearch(held)
  return { search, isKnown: () => false, decide: () => ({ kind: 'refuse', reason: 'denied' }) }
}
