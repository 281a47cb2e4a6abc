import { Link } from 'wouter'
import type { RecordedRequest } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { useList, useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useFilters } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { Section } from '../../ui/facts.tsx'
import { Select } from '../../ui/fields.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Mark } from '../../ui/status.tsx'
import { Hostile, Name } from '../../ui/text.tsx'
import { exact } from '../../ui/times.ts'
import { againAfter, CHOICES, factsOf, lookOf, replyOf, sinceStart, targetOf, wordOf } from './requests.ts'
import type { Run } from './run.ts'

/** Requests at first, and with each more; a run may have a million. */
const SHOWN = 50
/** Characters of a target that are shown at first. */
const LONG = 120

/** What went through the proxy of a run, newest first, while it happens: where to, what became of it, with which placeholder. */
export function Requests({ run }: { readonly run: Run }) {
  const [{ decision }, setFilters] = useFilters(['decision'])
  const refused = useRefusal('listAnyRunRequests')
  const list = useList(
    'GET /v1/admin/runs/:id/requests',
    { limit: SHOWN, ...(decision === undefined ? {} : { decision }) },
    {
      id: run.id,
      enabled: refused === undefined,
      refetchInterval: (rows) => againAfter(run, rows.length, Date.now()),
    },
  )
  const rows = list.data ?? []
  // The counts come with the run, which is seldom read again by itself.
  useRead(
    'GET /v1/admin/runs/:id',
    { id: run.id },
    { enabled: refused === undefined, refetchInterval: () => againAfter(run, rows.length, Date.now()) },
  )
  return (
    <Section
      title={titleOf(run)}
      aside={
        <Select
          aria-label="Which requests"
          className="w-auto! text-sm"
          value={decision ?? ''}
          onChange={({ target: { value } }) => setFilters({ decision: value })}
        >
          <option value="">All</option>
          {CHOICES.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </Select>
      }
    >
      {refused !== undefined && <p className="text-muted">{refused}</p>}
      {list.error !== null && <ErrorNote error={list.error} retry={() => void list.refetch()} />}
      {refused === undefined && list.data === undefined && list.error === null && <Skeleton lines={4} />}
      {list.data?.length === 0 && <NoRequests isFiltered={decision !== undefined} />}
      <ol aria-label="Requests, newest first">
        {rows.map((request, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no id, and only come in above
          <RequestLine key={rows.length - index} request={request} run={run} />
        ))}
      </ol>
      {list.hasNextPage && (
        <div className="mt-3 flex flex-wrap items-center gap-3">
          <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show {SHOWN} more
          </Button>
          <span className="text-sm text-muted">The newest {rows.length.toLocaleString('en')} are shown.</span>
        </div>
      )}
    </Section>
  )
}

function titleOf({ requests }: Run): string {
  const title = 'Requests through the proxy'
  if (requests === undefined) return title
  const [total, refused] = [requests.total, requests.refused].map((count) => count.toLocaleString('en'))
  return `${title}: ${total}${requests.refused === 0 ? '' : `, ${refused} refused`}`
}

function NoRequests({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <p className="text-muted">No such request.</p>
  ) : (
    <p className="text-muted">
      None. <code>mayfly run --proxy -- PROGRAM</code> keeps the secrets from the program, and shows here what
      it asks for.
    </p>
  )
}

/** The line of the time goes through all rows. */
function RequestLine({ request, run }: { readonly request: RecordedRequest; readonly run: Run }) {
  const { credential_id, placeholder, backend } = request
  const whose = placeholder ?? backend
  return (
    <li className="grid grid-cols-[64px_20px_minmax(0,1fr)_auto] items-baseline gap-x-2 text-sm">
      <time
        className="text-right text-xs text-muted tabular-nums"
        dateTime={request.at}
        title={exact(Date.parse(request.at))}
      >
        {sinceStart(request, run)}
      </time>
      <span className="relative self-stretch text-center">
        <span aria-hidden="true" className="absolute inset-y-0 left-1/2 border-l border-line" />
        <span className="relative bg-surface py-0.5">
          <Mark look={lookOf(request)} />
        </span>
      </span>
      <span className="min-w-0 pb-2.5">
        <span className="font-mono text-xs">
          <Hostile text={targetOf(request)} most={LONG} />
        </span>
        <span className="flex min-w-0 flex-wrap gap-x-2 text-xs text-muted">
          <span className={request.decision === 'misused' ? 'font-semibold text-bad' : ''}>
            <Name text={wordOf(request.decision)} />
          </span>
          {whose !== null && (
            <span className="min-w-0 max-w-full">
              {credential_id === null ? (
                <Name text={whose} />
              ) : (
                <Link className="text-accent underline" href={paths.credential(credential_id)}>
                  <Name text={whose} />
                </Link>
              )}
            </span>
          )}
          {factsOf(request).map((one) => (
            <span key={one} className="min-w-0 max-w-full">
              <Name text={one} />
            </span>
          ))}
        </span>
      </span>
      <span className={request.status === null ? 'text-muted' : 'tabular-nums'}>{replyOf(request)}</span>
    </li>
  )
}
