import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { Token } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { Section } from '../../ui/facts.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Name } from '../../ui/text.tsx'
import { exact } from '../../ui/times.ts'
import { CredentialStatus, isUnended } from '../credentials/status.tsx'
import type { Run } from './run.ts'
import { type Bar, barOf, endOf, placeOf, type Span, spanOf, ticksOf } from './timeline.ts'

/** Credentials at first, and with each more; a run may have thousands. */
const SHOWN = 50

/** The run and each credential that was issued for it as bars on one axis, from its start to its end or to now. */
export function Timeline({ run }: { readonly run: Run }) {
  const refused = useRefusal('listCredentials')
  const list = useList(
    'GET /v1/admin/tokens',
    { run: run.id, limit: SHOWN },
    { enabled: refused === undefined },
  )
  const now = useNow(1_000)
  const span = spanOf(run, now)
  const { live } = run.credentials
  return (
    <Section
      title={`Timeline: ${live.toLocaleString('en')}${live >= MOST_COUNTED ? ' or more' : ''} live`}
      aside={
        <Link
          className="text-sm text-accent underline"
          href={paths.credentials({ run: run.id, status: 'any' })}
        >
          All in Credentials
        </Link>
      }
    >
      <div className="relative [--name:clamp(112px,32%,208px)]">
        <Axis span={span} end={run.ended_at === null ? 'now' : 'end'} />
        <RunBar run={run} span={span} />
        {refused !== undefined && <p className="pt-3 text-muted">Its credentials: {refused}</p>}
        {list.error !== null && <ErrorNote error={list.error} retry={() => void list.refetch()} />}
        {refused === undefined && list.data === undefined && list.error === null && <Skeleton lines={4} />}
        {list.data?.length === 0 && <p className="pt-3 text-muted">Nothing was issued for it.</p>}
        <ol aria-label="Credentials, newest first">
          {list.data?.map((token) => (
            <CredentialBar key={token.id} token={token} span={span} />
          ))}
        </ol>
      </div>
      {list.hasNextPage && (
        <div className="mt-3 flex flex-wrap items-center gap-3">
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show {SHOWN} more
          </Button>
          <span className="text-sm text-muted">
            The newest {list.data?.length.toLocaleString('en')} are shown.
          </span>
        </div>
      )}
    </Section>
  )
}

/** The server counts no further. */
const MOST_COUNTED = 1_000

/** The lines of the axis go through all rows. */
function Axis({ span, end }: { readonly span: Span; readonly end: string }) {
  const label = 'absolute top-0 text-xs text-muted whitespace-nowrap'
  return (
    <>
      <div className="h-6" />
      <div aria-hidden="true" className="absolute inset-y-0 right-0 left-[var(--name)]">
        <span className={`${label} left-0`}>start</span>
        {ticksOf(span).map(({ place, label: text }) => (
          <span
            key={place}
            className="absolute inset-y-0 border-l border-line"
            style={{ left: percent(place) }}
          >
            <span className={`${label} -translate-x-1/2 bg-surface px-1`}>{text}</span>
          </span>
        ))}
        <span className={`${label} right-0`}>{end}</span>
        <span className="absolute top-6 bottom-0 left-0 border-l border-edge/60" />
        <span className="absolute top-6 right-0 bottom-0 border-l border-edge/60" />
      </div>
    </>
  )
}

const percent = (part: number): string => `${part * 100}%`
const ROW = 'relative grid grid-cols-[var(--name)_minmax(0,1fr)] items-center py-1'

function Track({
  bar,
  look,
  children,
}: {
  readonly bar: Bar
  readonly look: string
  readonly children?: ReactNode
}) {
  return (
    <span aria-hidden="true" className="relative h-3 overflow-hidden">
      <span
        className={`absolute inset-y-0.5 min-w-[3px] ${bar.isOpen ? 'rounded-l-full' : 'rounded-full'} ${look}`}
        // At the right end the least width would be outside.
        style={{ left: `min(${percent(bar.left)}, 100% - 3px)`, width: percent(bar.width) }}
      />
      {children}
    </span>
  )
}

/** Of one whose beats stopped, the silence before its end is pale. */
function RunBar({ run, span }: { readonly run: Run; readonly span: Span }) {
  const start = Date.parse(run.started_at)
  const end = run.ended_at === null ? null : Date.parse(run.ended_at)
  const beat = Date.parse(run.last_beat)
  const isSilent = run.reason === 'missed_heartbeat'
  return (
    <div className={`${ROW} min-h-8`}>
      <span className="font-semibold">The run</span>
      <Track bar={barOf(start, end, span)} look={isSilent ? 'bg-line' : 'bg-ink/70'}>
        {isSilent && (
          <span
            className="absolute inset-y-0.5 left-0 min-w-[3px] rounded-full bg-ink/70"
            style={{ width: percent(placeOf(beat, span)) }}
          />
        )}
      </Track>
      <span className="sr-only">
        started {exact(start)}, last beat {exact(beat)}, {end === null ? 'running' : `ended ${exact(end)}`}
      </span>
    </div>
  )
}

function CredentialBar({ token, span }: { readonly token: Token; readonly span: Span }) {
  const from = Date.parse(token.created_at)
  const end = endOf(token)
  const told = `issued ${exact(from)}, ${end === null ? `ends by ${exact(Date.parse(token.expires_at))}` : `ended ${exact(end)}`}`
  return (
    <li className={ROW} title={told}>
      <span className="min-w-0 pr-3">
        <Link className="block text-accent underline" href={paths.credential(token.id)}>
          <Name text={token.backend} />
        </Link>
        <span className="block text-xs">
          <CredentialStatus row={token} />
        </span>
      </span>
      <Track bar={barOf(from, end, span)} look={colourOf(token)} />
      <span className="sr-only">, {told}</span>
    </li>
  )
}

/** As the state beside it, which has a shape and a word. */
function colourOf(token: Token): string {
  if (token.status === 'active') return 'bg-accent'
  if (token.upstream !== 'pending') return 'bg-edge'
  return isUnended(token) ? 'bg-bad' : 'bg-wait'
}
