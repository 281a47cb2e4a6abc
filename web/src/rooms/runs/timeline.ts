import type { Token } from '../../../../src/client/wire.ts'
import { duration } from '../../ui/times.ts'
import type { Run } from './run.ts'

/** The time that is shown, in epoch ms: from the start of a run to its end, or to now. */
export interface Span {
  readonly from: number
  readonly to: number
}

export function spanOf(run: Pick<Run, 'started_at' | 'ended_at'>, now: number): Span {
  const from = Date.parse(run.started_at)
  // A clock of the browser that is behind draws a second.
  return { from, to: Math.max(from + 1_000, run.ended_at === null ? now : Date.parse(run.ended_at)) }
}

/** A bar on the axis, in parts of its width from 0 to 1. */
export interface Bar {
  readonly left: number
  readonly width: number
  /** It goes on: the time that is shown ends before it. */
  readonly isOpen: boolean
}

export function barOf(from: number, to: number | null, span: Span): Bar {
  const left = placeOf(from, span)
  const isOpen = to === null || to > span.to
  return { left, width: (isOpen ? 1 : placeOf(to, span)) - left, isOpen }
}

/** Where a time is on the axis, from 0 to 1. */
export function placeOf(time: number, { from, to }: Span): number {
  return Math.max(0, Math.min(1, (time - from) / (to - from)))
}

/** When a credential ended; null: it has not. */
export function endOf({ status, ended_at, expires_at }: Token): number | null {
  if (status === 'active') return null
  return Date.parse(ended_at ?? expires_at)
}

const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000]
const STEPS = [
  ...[1, 2, 5, 10, 20, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 20, 30].map((count) => count * MINUTE),
  ...[1, 2, 4, 8, 12].map((count) => count * HOUR),
  ...[1, 2, 5, 10, 30, 100].map((count) => count * DAY),
]
const MOST_TICKS = 4
/** Nearer to the end than this, a tick would stand in the way of the word there. */
const LAST_PLACE = 0.8

/** Where the axis has a line, and the time since the start that stands there. */
export function ticksOf(span: Span): readonly { readonly place: number; readonly label: string }[] {
  const length = span.to - span.from
  const step = STEPS.find((one) => length / one < MOST_TICKS + 1) ?? length
  return Array.from({ length: MOST_TICKS }, (_, n) => (n + 1) * step)
    .map((ms) => ({ place: ms / length, label: duration(ms / 1_000) }))
    .filter(({ place }) => place <= LAST_PLACE)
}
