import { useNow } from './clock.ts'
import { duration, exact, relative } from './times.ts'

interface Props {
  /** ISO 8601; null or undefined: `none` is shown. */
  readonly at: string | null | undefined
  readonly none?: string
}

/** A relative time, with the exact one in UTC on hover and on focus. */
export function Time({ at, none = 'never' }: Props) {
  const time = at == null ? Number.NaN : Date.parse(at)
  const now = useNow(Math.abs(time - Date.now()) < 120_000 ? 1_000 : 30_000)
  if (at == null || Number.isNaN(time)) return <span className="text-muted">{none}</span>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the exact time is for keyboards, too
    <time className="tip whitespace-nowrap" dateTime={at} data-tip={exact(time)} tabIndex={0}>
      {relative(time, now)}
      <span className="sr-only">, {exact(time)}</span>
    </time>
  )
}

interface LifeProps {
  readonly from: string
  /** When it ends; null: it does not. */
  readonly until: string | null
  /** Beside the bar: how long is left. */
  readonly isLabelled?: boolean
  /** With less left than this, in ms, the bar is as what waits for somebody. */
  readonly soonMs?: number
}

/** A lifetime as a bar that runs out: everything here ends, and one sees when. */
export function Life({ from, until, isLabelled = true, soonMs = 60_000 }: LifeProps) {
  const now = useNow(1_000)
  if (until === null) return <span className="text-muted">no end</span>
  const [start, end] = [Date.parse(from), Date.parse(until)]
  const left = Math.max(0, Math.min(1, (end - now) / Math.max(1, end - start)))
  const isSoon = end - now < soonMs && end > now
  const seconds = (end - now) / 1_000
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the exact time is for keyboards, too
    <span className="tip inline-flex items-center gap-2" data-tip={exact(end)} tabIndex={0}>
      <span aria-hidden="true" className="relative h-1 w-16 overflow-hidden rounded-full bg-line">
        <span
          className={`absolute inset-y-0 left-0 rounded-full ${isSoon ? 'bg-wait' : 'bg-accent'}`}
          style={{ width: `${left * 100}%` }}
        />
      </span>
      {isLabelled && (
        <time dateTime={until} className="whitespace-nowrap">
          {seconds <= 0 ? `${relative(end, now)}` : `${duration(seconds).split(' ')[0]} left`}
        </time>
      )}
      <span className="sr-only">ends {exact(end)}</span>
    </span>
  )
}
