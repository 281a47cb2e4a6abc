import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Select } from '../../ui/fields.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { ScopesLine } from '../../ui/scopes.tsx'
import { Name } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { isClaim, tokenOf } from './approval.ts'
import { arrange, leads, nextOf, type Placed } from './order.ts'
import { RequestDetail } from './request.tsx'
import { RequestStatus } from './status.tsx'

interface Row extends Placed {
  /** How many requests its group has; 0: it is not the first of it. */
  readonly leads: number
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'Agent', width: 'minmax(0, 1.3fr)', cell: (placed) => <Agent placed={placed} /> },
  {
    name: 'Asks',
    width: '112px',
    from: 420,
    cell: ({ row: { type } }) =>
      type === 'claim' ? 'for nothing yet' : type === 'amendment' ? 'for more' : 'to come in',
  },
  {
    name: 'It would gain',
    width: 'minmax(0, 2fr)',
    from: 760,
    cell: ({ row }) =>
      isClaim(row) && row.status === 'pending' ? (
        <Token row={row} />
      ) : (
        <ScopesLine scopes={row.difference?.added ?? row.scopes} />
      ),
  },
  {
    name: 'From',
    width: '128px',
    from: 900,
    cell: ({ row: { ip_address } }) => <Name text={ip_address ?? '–'} mono />,
  },
  { name: 'Asked', width: '84px', from: 560, cell: ({ row: { created_at } }) => <Time at={created_at} /> },
  {
    name: 'State',
    width: '148px',
    cell: ({ row, isGone }) =>
      row.status === 'pending' && !isGone ? (
        <Life from={row.created_at} until={row.expires_at} />
      ) : (
        <RequestStatus row={row} isGone={isGone} />
      ),
  },
]

/** Enrollments, requests and claims that wait for a decision, grouped by agent; with a status, those that were decided. */
export function Inbox() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [{ status }, setFilters] = useFilters(['status'])
  const list = useList('GET /v1/admin/pending', status === undefined ? {} : { status })
  const { placed, settle } = usePlaced(list.data, status)
  const rows = placed.map((one, index): Row => ({ ...one, leads: leads(placed, index) }))
  const gone = rows.filter(({ isGone }) => isGone).length
  const decided = (of: string) => () => {
    const next = nextOf(placed, of)
    settle()
    go(keep(next === undefined ? paths.inbox() : paths.request(next)))
  }
  useEntries([
    { name: 'Show what waits', group: 'Here', run: () => go(paths.inbox()) },
    { name: 'Show approved requests', group: 'Here', run: () => go(`${paths.inbox()}?status=approved`) },
    { name: 'Show rejected requests', group: 'Here', run: () => go(`${paths.inbox()}?status=rejected`) },
  ])
  const flags = status === undefined ? '' : ` --status ${status}`
  return (
    <Page
      title="Inbox"
      subtitle={status === undefined && list.data !== undefined ? countOf(rows.length - gone) : undefined}
      actions={
        <CopyAs
          command={`mayfly pending${flags}${status === undefined ? '\nmayfly pending --follow' : ''}`}
          request={`GET /v1/admin/pending${status === undefined ? '' : `?status=${status}`}`}
        />
      }
      filters={
        <div className="flex flex-wrap items-center gap-2">
          <StatusFilter value={status} onChange={(next) => setFilters({ status: next })} />
          {gone > 0 && <Button onClick={settle}>Clear {gone} decided elsewhere</Button>}
        </div>
      }
    >
      <Split
        detail={
          id === undefined ? undefined : (
            <RequestDetail
              id={id}
              listed={rows.find(({ row }) => row.id === id)?.row}
              back={keep(paths.inbox())}
              onDecided={decided(id)}
            />
          )
        }
        list={
          <Listed read={list} lines={8} isEmpty={rows.length === 0} empty={<Nothing status={status} />}>
            <List
              label="Requests"
              rows={rows}
              columns={COLUMNS}
              keyOf={({ row }) => row.id}
              openKey={id}
              onOpen={({ row }) => go(keep(paths.request(row.id)))}
              more={moreOf(list)}
            />
          </Listed>
        }
      />
    </Page>
  )
}

/** Keeps the rows where they are while the listing changes; `settle` puts them in order again. */
function usePlaced(data: Parameters<typeof arrange>[1] | undefined, of: string | undefined) {
  const [kept, setKept] = useState<{ data: typeof data; of: typeof of; placed: readonly Placed[] }>({
    data: undefined,
    of,
    placed: [],
  })
  if (kept.data !== data || kept.of !== of) {
    const placed = data === undefined ? [] : arrange(kept.of === of ? kept.placed : [], data)
    setKept({ data, of, placed })
    return { placed, settle: () => {} }
  }
  return { placed: kept.placed, settle: () => setKept({ data: undefined, of, placed: [] }) }
}

const countOf = (count: number): string => (count === 0 ? 'nothing waits' : `${count} wait`)

function Agent({ placed: { row, leads: count, isGone } }: { readonly placed: Row }) {
  const look = isGone ? 'text-muted' : count === 0 ? 'pl-4 text-muted' : 'font-medium'
  return (
    <span className={`flex min-w-0 items-center gap-2 ${look}`}>
      <span className="min-w-0">
        <Name text={row.name} />
      </span>
      {count > 1 && (
        <span className="text-xs font-normal whitespace-nowrap text-muted">{count} requests</span>
      )}
    </span>
  )
}

/** Whom the token of an agent of a platform names. */
function Token({ row }: { readonly row: PendingEnrollment }) {
  const { platform, subject } = tokenOf(row)
  return <Name text={`${platform}: ${subject}`} mono />
}

interface StatusFilterProps {
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

function StatusFilter({ value, onChange }: StatusFilterProps) {
  return (
    <Select
      aria-label="State"
      className="w-auto!"
      data-filter
      value={value ?? ''}
      onChange={({ target }) => onChange(target.value || undefined)}
    >
      <option value="">Waiting</option>
      <option value="approved">Approved</option>
      <option value="rejected">Rejected</option>
      <option value="expired">Expired</option>
    </Select>
  )
}

function Nothing({ status }: { readonly status: string | undefined }) {
  if (status !== undefined) return <Empty title={`None is ${status}`}>Look at those that wait.</Empty>
  return (
    <Empty title="Nothing waits for a decision">
      A machine that runs <code>mayfly enroll --server {location.origin}</code> and an agent that runs{' '}
      <code>mayfly request SCOPE --reason WHY</code> appear here at once, and so does an agent of a platform
      that has no rights yet.
    </Empty>
  )
}
