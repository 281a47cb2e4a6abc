import type { Answer } from '../../../../src/client/routes.ts'
import { secondsOf } from '../../ui/lifetimes.tsx'

export type Run = Answer<'GET /v1/admin/runs/:id'>

/** Why a run ended: in a list, and in a sentence. */
const REASONS: Readonly<Record<NonNullable<Run['reason']>, readonly [word: string, sentence: string]>> = {
  completed: ['completed', 'Its agent ended it: the work was done.'],
  placeholder_misused: [
    'placeholder misused',
    'Its proxy ended it: a placeholder was sent where it does not belong.',
  ],
  missed_heartbeat: ['no heartbeat', 'It did not say any more that it lives.'],
  ended_by: ['ended by admin', 'An administrator ended it.'],
  agent_ended: ['agent ended', 'Its agent was deleted, or expired.'],
  expired: ['time over', 'It reached the longest time that this server allows.'],
}

/** A newer server may know more reasons. */
export const wordOf = (reason: string): string => REASONS[reason as keyof typeof REASONS]?.[0] ?? reason
export const sentenceOf = (reason: string): string => REASONS[reason as keyof typeof REASONS]?.[1] ?? reason

/** Its agent ended it: that is no news. */
export const isOwnEnd = (reason: Run['reason']): boolean =>
  reason === 'completed' || reason === 'placeholder_misused'

/** `operator:alice@example.com` → `alice@example.com`. */
export const personOf = (actor: string): string =>
  actor === 'local' ? 'local administrator' : actor.replace(/^operator:/, '')

export const heartbeatMs = ({ heartbeat }: Pick<Run, 'heartbeat'>): number =>
  (secondsOf(heartbeat) ?? 0) * 1_000

const CLOSEST_MS = { one: 2_000, list: 5_000 }
const FURTHEST_MS = 60_000

/** In how many ms one run is read again, as no event tells of a beat: when the next is due. False: never. */
export function nextLook(run: Run | undefined, now: number): number | false {
  if (run?.dead_at == null) return false
  const beat = Date.parse(run.last_beat) + heartbeatMs(run)
  return within(CLOSEST_MS.one, Math.min(beat, Date.parse(run.dead_at)) - now)
}

/** In how many ms a list is read again: when the first of them would be dead. */
export function nextLookOfAll(runs: readonly Run[], now: number): number | false {
  const deaths = runs.flatMap(({ dead_at }) => (dead_at === null ? [] : [Date.parse(dead_at)]))
  return deaths.length === 0 ? false : within(CLOSEST_MS.list, Math.min(...deaths) - now)
}

const within = (least: number, ms: number): number => Math.max(least, Math.min(FURTHEST_MS, ms))
