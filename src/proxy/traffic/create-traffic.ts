import type { Traffic, TrafficParts } from './parts.ts'

export function createTraffic(_parts: TrafficParts): Traffic {
  throw new Error('not built yet')
}
