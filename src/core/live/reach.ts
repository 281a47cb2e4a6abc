import type { Action } from '../../domain/actions.ts'
import { coversAny } from '../../domain/scope.ts'
import type { Caller } from '../caller.ts'

export const AUDIT_SCOPE = 'admin:audit:read'

/** Whoever may read the things of an area may know that one of them has changed. */
const AREAS: Readonly<Record<string, string>> = {
  agent: 'admin:agents:read',
  backend: 'admin:backends:read',
  credential: 'admin:tokens:read',
  enrollment: 'admin:enrollments:read',
  run: 'admin:agents:read',
  operator: 'admin:operators:read',
  session: 'admin:operators:read',
  passkey: 'admin:operators:read',
}

/** What a caller may follow: all of the audit, or the facts of some areas. */
export interface Reach {
  readonly isWhole: boolean
  readonly areas: readonly string[]
}

/** Undefined for a caller that may follow nothing. */
export function reachOf(caller: Caller): Reach | undefined {
  if (caller.kind === 'local' || coversAny(caller.scopes, AUDIT_SCOPE)) return { isWhole: true, areas: [] }
  const areas = Object.keys(AREAS).filter((area) => coversAny(caller.scopes, AREAS[area] ?? ''))
  return areas.length === 0 ? undefined : { isWhole: false, areas }
}

export function isSameReach(one: Reach, other: Reach): boolean {
  return one.isWhole === other.isWhole && one.areas.join() === other.areas.join()
}

/** Whether an entry of this action is within reach. */
export function reaches({ isWhole, areas }: Reach, action: Action): boolean {
  return isWhole || areas.includes(action.slice(0, action.indexOf('.')))
}
