import { encodeTime } from '../../domain/ids.ts'
import type { Change, Step } from './change.ts'

/** The id of an entry is at most this old when it is sent to the database, in ms. */
export const FRESH_MS = 1_000

const TIME_LENGTH = encodeTime(0).length

/**
 * Makes old changes new: gives `movable` entries whose ids are older than `FRESH_MS` the time `now`, so that no entry appears
 * far behind those that have been read (`tables/audit/horizon.ts`). A change that is new enough stays the same object.
 */
export function freshener(now: number): (change: Change) => Change {
  const bound = encodeTime(Math.max(0, now - FRESH_MS))
  const time = encodeTime(now)
  const isOld = (id: string) => id.slice(0, TIME_LENGTH) < bound
  const freshen = (step: Step): Step => {
    if (step.op === 'insert' && step.table === 'audit' && step.movable === true && isOld(step.row.id))
      return { ...step, row: { ...step.row, id: time + step.row.id.slice(TIME_LENGTH) } }
    if (step.op === 'run' && step.timeAt !== undefined && isOld(String(step.params[step.timeAt])))
      return { ...step, params: step.params.with(step.timeAt, time) }
    return step
  }
  return (change) => {
    const fresh = change.map(freshen)
    return fresh.every((step, index) => step === change[index]) ? change : fresh
  }
}
