import { useLocation, useParams } from 'wouter'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Name } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { RunDetail } from './detail.tsx'
import { commandOf, FILTERS, queryOf, RunFilters } from './filters.tsx'
import { nextLookOfAll, type Run } from './run.ts'
import { RunStatus } from './status.tsx'

const COLUMNS: readonly Column<Run>[] = [
  { name: 'Agent', width: 'minmax(0, 1fr)', cell: ({ agent }) => <Name text={agent.name} /> },
  {
    name: 'For',
    width: 'minmax(0, 1.6fr)',
    cell: ({ purpose }) =>
      purpose === null ? <span className="text-muted">not said</span> : <Name text={purpose} />,
  },
  { name: 'State', width: 'clamp(116px, 12vw, 148px)', cell: (run) => <RunStatus run={run} /> },
  {
    name: 'Holds',
    width: '56px',
    from: 900,
    cell: ({ credentials }) => <Count count={credentials.live} />,
  },
  { name: 'Started', width: '84px', from: 760, cell: ({ started_at }) => <Time at={started_at} /> },
  { name: 'Last beat', width: '84px', from: 900, cell: ({ last_beat }) => <Time at={last_beat} /> },
  {
    name: 'Dead in',
    width: '148px',
    from: 620,
    cell: ({ dead_at, last_beat, ended_at }) =>
      dead_at === null ? <Time at={ended_at} /> : <Life from={last_beat} until={dead_at} soonMs={0} />,
  },
]

/** The server counts no further. */
const MOST_COUNTED = 1_000
function Count({ count }: { readonly count: number }) {
  return (
    <span className="tabular-nums">
      {count.toLocaleString('en')}
      {count >= MOST_COUNTED && '+'}
    </span>
  )
}

/** The work of agents: what lives, how long it still does unless it says so, and why the rest has ended. */
export function Runs() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [filters, setFilters] = useFilters(FILTERS)
  const query = queryOf(filters)
  const list = useList('GET /v1/admin/runs', query, {
    refetchInterval: (rows) => nextLookOfAll(rows, Date.now()),
  })
  const rows = list.data ?? []
  useEntries([
    { name: 'Show runs that have ended', group: 'Here', run: () => setFilters({ state: 'ended' }) },
    { name: 'Show what runs now', group: 'Here', run: () => go(paths.runs()) },
  ])
  return (
    <Page
      title="Runs"
      subtitle={filters.state === undefined ? 'that live' : undefined}
      actions={
        <CopyAs command={commandOf(filters)} request={`GET /v1/admin/runs?${new URLSearchParams(query)}`} />
      }
      filters={<RunFilters filters={filters} onChange={setFilters} />}
    >
      <Split
        detail={id === undefined ? undefined : <RunDetail id={id} back={keep(paths.runs())} />}
        list={
          <Listed
            read={list}
            isEmpty={rows.length === 0}
            empty={<NoRuns isFiltered={Object.values(filters).some((one) => one !== undefined)} />}
          >
            <List
              label="Runs"
              rows={rows}
              columns={COLUMNS}
              keyOf={(run) => run.id}
              nameOf={(run) => `${run.id} of ${run.agent.name}`}
              openKey={id}
              onOpen={(run) => go(keep(paths.run(run.id)))}
              more={moreOf(list)}
            />
          </Listed>
        }
      />
    </Page>
  )
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No run matches">Take a filter off, or look at another state.</Empty>
  ) : (
    <Empty title="Nothing runs now">
      <code>mayfly run -- PROGRAM</code> begins a run: what the program gets ends with it, however it ends.
    </Empty>
  )
}
