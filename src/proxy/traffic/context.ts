import { createRules, type Rules } from '../rules/decide.ts'
import type { Held } from '../types.ts'
import type { TrafficParts } from './parts.ts'
import { createPools, type Pools } from './upstream/pools.ts'

/** What every request needs. */
export interface Context extends TrafficParts {
  readonly idleMs: number
  readonly connectMs: number
  readonly pools: Pools
  /** For the credentials that the run holds now. */
  rules(): Rules
}

const IDLE_MS = 10 * 60_000
const CONNECT_MS = 10_000

export function createContext(parts: TrafficParts): Context {
  const { idleMs = IDLE_MS, connectMs = CONNECT_MS } = parts
  let of: readonly Held[] | undefined
  let rules: Rules | undefined
  return {
    ...parts,
    ...{ idleMs, connectMs, pools: createPools({ ...parts, connectMs }) },
    rules: () => {
      const held = parts.held()
      if (rules === undefined || of !== held) rules = createRules(held)
      of = held
      return rules
    },
  }
}
