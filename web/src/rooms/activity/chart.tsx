import { lazy, Suspense, useMemo, useState } from 'react'
import { failureOf } from '../../api/failure.ts'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { exact } from '../../ui/times.ts'
import { type Line, type Points, pointsOf, rangeOf, sentenceOf } from './points.ts'
import type { Filters } from './query.ts'

const Plot = lazy(async () => ({ default: (await import('./plot.tsx')).Plot }))

/** The height is kept from the first moment, so that the list never moves. */
const HEIGHT = 128
/** Counting follows the audit by some seconds; more than this is worth a word. */
const LATE_MS = 180_000

interface Props {
  readonly filters: Filters
  /** An entry is open, which a narrow window is for. */
  readonly isBesideDetail: boolean
  readonly onBrush: (range: { since: string | undefined; until: string | undefined }) => void
}

/** Issues, ends and denials over time. A stretch that is brushed becomes the time of the list. */
export function ActivityChart({ filters, isBesideDetail, onBrush }: Props) {
  const { since, until, backend, action } = filters
  const refused = useRefusal('readActivity')
  const query = { since, until, backend, action, by: 'action' }
  const { data, error } = useRead(
    'GET /v1/admin/activity',
    { query },
    { enabled: refused === undefined, ...(until === undefined ? { refetchInterval: 30_000 } : {}) },
  )
  const [at, setAt] = useState<number>()
  const [isTable, setTable] = useState(false)
  // A pointer that moves draws nothing anew.
  const points = useMemo(() => (data === undefined ? undefined : pointsOf(data, action)), [data, action])
  if (refused !== undefined) return null
  if (error !== null && data === undefined)
    // The list says what is wrong with the filters.
    return failureOf(error).code === 'invalid_request' ? null : (
      <div className="border-b border-line px-4 py-2">
        <ErrorNote error={error} />
      </div>
    )
  const isLate =
    data !== undefined &&
    Date.parse(data.counted_until) < Math.min(Date.parse(data.until), Date.now() - LATE_MS)
  return (
    <figure
      className={`border-b border-line px-4 pt-2 pb-1 ${isBesideDetail ? 'max-lg:hidden' : ''}`}
      aria-label="Activity over time"
    >
      <figcaption className="flex min-h-8 flex-wrap items-center justify-between gap-x-4 text-xs text-muted">
        <Legend points={points} at={at} />
        <span className="flex items-center gap-2">
          {(filters.agent ?? filters.actor ?? filters.run) !== undefined && <span>of all agents</span>}
          {isLate && <span>counted until {exact(Date.parse(data.counted_until))}</span>}
          {(since !== undefined || until !== undefined) && (
            <Button
              look="quiet"
              className="min-h-6! px-1.5! text-xs"
              onClick={() => onBrush({ since: undefined, until: undefined })}
            >
              Any time
            </Button>
          )}
          <Button
            look="quiet"
            className="min-h-6! px-1.5! text-xs"
            disabled={points === undefined}
            onClick={() => setTable(true)}
          >
            As a table
          </Button>
        </span>
      </figcaption>
      {points !== undefined && <p className="sr-only">{sentenceOf(points)}</p>}
      <div style={{ height: HEIGHT }} aria-hidden="true">
        {points !== undefined && (
          <Suspense>
            <Plot
              points={points}
              height={HEIGHT}
              onPoint={setAt}
              onBrush={(...stretch) => onBrush(rangeOf(stretch, points.stepSeconds, Date.now() / 1_000))}
            />
          </Suspense>
        )}
      </div>
      {isTable && points !== undefined && (
        <Table points={points} onBrush={onBrush} onClose={() => setTable(false)} />
      )}
    </figure>
  )
}

/** What the lines are, and how many: in all, or where the pointer is. */
function Legend({ points, at }: { readonly points: Points | undefined; readonly at: number | undefined }) {
  const time = at === undefined ? undefined : points?.times[at]
  return (
    <span className="flex flex-wrap items-center gap-x-4">
      {points?.lines.map((line) => (
        <span key={line.key} className="inline-flex items-center gap-1.5">
          <Swatch of={line.key} />
          <span className="font-medium text-ink tabular-nums">
            {countOf(line, time === undefined ? undefined : at)}
          </span>
          {line.label}
        </span>
      ))}
      {time !== undefined && <span>from {exact(time * 1_000)}</span>}
    </span>
  )
}

const countOf = ({ counts, total }: Line, at: number | undefined): string =>
  at === undefined ? total.toLocaleString('en') : (counts[at]?.toLocaleString('en') ?? 'not yet counted')

/** As the line is drawn: by shape as well as by colour. */
function Swatch({ of }: { readonly of: Line['key'] }) {
  const shape = {
    issued: 'h-2.5 w-2.5 bg-accent',
    ended: 'h-0 w-4 border-t-2 border-dashed border-muted',
    denied: 'h-2.5 w-1 bg-bad',
  }[of]
  return <span aria-hidden="true" className={`inline-block ${shape}`} />
}

interface TableProps {
  readonly points: Points
  readonly onBrush: Props['onBrush']
  readonly onClose: () => void
}

/** The same numbers, and the same choice of a time, by keyboard. */
function Table({ points, onBrush, onClose }: TableProps) {
  const { times, lines, stepSeconds } = points
  const rows = times
    .map((time, index) => ({ time, counts: lines.map(({ counts }) => counts[index] ?? null) }))
    .filter(({ counts }) => counts.some((count) => count !== null && count > 0))
    .reverse()
  return (
    <Dialog title="Activity over time" description={sentenceOf(points)} onClose={onClose} isWide>
      {rows.length === 0 ? (
        <p className="text-muted">Nothing has happened in this time.</p>
      ) : (
        <table className="w-full text-left text-sm">
          <thead>
            <tr className="border-b border-line text-xs text-muted">
              <th className="py-1 font-normal">From</th>
              {lines.map(({ key, label }) => (
                <th key={key} className="py-1 text-right font-normal">
                  {label}
                </th>
              ))}
              <th className="py-1">
                <span className="sr-only">Choose</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ time, counts }) => (
              <tr key={time} className="border-b border-line/60">
                <th scope="row" className="py-1 font-normal">
                  {exact(time * 1_000)}
                </th>
                {lines.map(({ key }, index) => (
                  <td key={key} className="py-1 text-right tabular-nums">
                    {counts[index]?.toLocaleString('en') ?? ''}
                  </td>
                ))}
                <td className="py-1 text-right">
                  <Button
                    look="link"
                    aria-label={`Only this: from ${exact(time * 1_000)}`}
                    onClick={() => {
                      onBrush(rangeOf([time, time + stepSeconds], stepSeconds, Date.now() / 1_000))
                      onClose()
                    }}
                  >
                    Only this
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  )
}
