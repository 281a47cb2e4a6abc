import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Overview } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { type Look, Mark } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { duration } from '../../ui/times.ts'
import { Area } from './area.tsx'

/** A sweeper that is later than this has a cause. */
const LATE_SECONDS = 30

/** The four numbers that one looks at first, each with where it leads. */
export function Figures({ overview }: { readonly overview: Overview }) {
  const { live, waiting, unended, sweep_lag_seconds: lag } = overview
  const left = unended.reduce((sum, { count }) => sum + count, 0)
  const oldest = unended[0]
  return (
    <section aria-label="Now" className="grid grid-cols-2 border-y border-line md:grid-cols-4">
      <Figure
        name="Live credentials"
        count={live.total}
        href={paths.credentials()}
        look={live.total > 0 ? 'ok' : 'off'}
      >
        {live.total === 0
          ? 'nobody holds one'
          : `at ${live.by_backend.length} ${live.by_backend.length === 1 ? 'backend' : 'backends'}`}
      </Figure>
      <Figure
        name="Decisions that wait"
        count={waiting.count}
        href={paths.inbox()}
        look={waiting.count > 0 ? 'wait' : 'off'}
      >
        {waiting.oldest === null ? (
          'nobody waits for you'
        ) : (
          <Since at={waiting.oldest}>the oldest came</Since>
        )}
      </Figure>
      <Figure
        name="Ended here, not upstream"
        count={left}
        href={paths.credentials({ unended: 'true' })}
        look={left > 0 ? 'bad' : 'off'}
      >
        {oldest === undefined ? 'all ends are confirmed' : <Since at={oldest.since}>the first ended</Since>}
      </Figure>
      <Figure
        name="Sweep lag"
        count={lag < 1 ? '0s' : duration(lag)}
        href={paths.activity({ action: 'credential.expired' })}
        look={lag > LATE_SECONDS ? 'bad' : 'ok'}
      >
        {lag > LATE_SECONDS ? 'ends come late' : 'ends are on time'}
      </Figure>
    </section>
  )
}

const COLOURS = {
  ok: 'text-muted',
  off: 'text-muted',
  wait: 'font-medium text-wait',
  bad: 'font-semibold text-bad',
} as const

interface FigureProps {
  readonly name: string
  readonly count: number | string
  readonly href: string
  readonly look: Look
  readonly children: ReactNode
}

function Figure({ name, count, href, look, children }: FigureProps) {
  return (
    <div className="grid content-start gap-1 border-line px-4 py-3 max-md:odd:border-r max-md:[&:nth-child(n+3)]:border-t md:not-last:border-r">
      <Link href={href} className={`flex w-fit items-baseline gap-1.5 hover:underline ${COLOURS[look]}`}>
        <Mark look={look} />
        {name}
      </Link>
      <p className="text-xl font-semibold tabular-nums">
        {typeof count === 'number' ? count.toLocaleString('en') : count}
      </p>
      <p className="text-sm text-muted">{children}</p>
    </div>
  )
}

const Since = ({ at, children }: { readonly at: string; readonly children: string }) => (
  <>
    {children} <Time at={at} />
  </>
)

/** Live credentials over the last day. */
export function Day({ overview }: { readonly overview: Overview }) {
  const { total, history } = overview.live
  const most = Math.max(total, ...history.map(({ count }) => count))
  if (most === 0) return null
  return (
    <section aria-label="Live credentials over the last 24 hours">
      <div className="flex items-baseline justify-between gap-4">
        <h2 className="text-sm">Live credentials, last 24 hours</h2>
        <span className="text-xs text-muted">
          {history.length === 0 ? 'being counted' : `at most ${most.toLocaleString('en')}`}
        </span>
      </div>
      <Area
        what="Live credentials"
        history={history}
        now={total}
        className="mt-2 block h-24 w-full border-b border-line"
      />
      <div aria-hidden="true" className="mt-1 flex justify-between text-xs text-muted">
        <span>24 hours ago</span>
        <span>12 hours ago</span>
        <span>now</span>
      </div>
    </section>
  )
}
