import { createRules, type Rules } from '../rules/decide.ts'
import type { Held } from '../types.ts'
import type { TrafficParts } from './parts.ts'
import { createPools, type Pools } from './upstream/pools.ts'

/** What every request needs. */
export interface Context extends TrafficParts {
  readonly idleMs: number
  readonly pools: Pools
  /** For the credentials that the run holds now. */
  rules(): Rules
}

const IDLE_MS = 10 * 60_000

export function createContext(parts: TrafficParts): Context {
  const { idleMs = IDLE_MS } = parts
  let of: readonly Held[] | undefined
  let rules: Rules | undefined
  return {
    ...parts,
    ...{ idleMs, pools: createPools(parts) },
    rules: () => {
      const held = parts.held()
      if (rules === undefined || of !== held) rules = createRules(held)
      of = held
      return rules
    },
  }
}
