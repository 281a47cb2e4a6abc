import { useLocation, useParams } from 'wouter'
import type { Backend } from '../../../../src/client/wire.ts'
import { useAllPages } from '../../api/all-pages.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths, withQuery } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { AddBackend } from './add.tsx'
import { Cards } from './cards.tsx'
import { BackendDetail } from './detail.tsx'
import { BackendFilters, FILTERS } from './filters.tsx'
import { matching, needsPerson } from './state.ts'
import { BackendStatus } from './status.tsx'

/** Above this many, cards are longer than one can look at: they become rows. */
const MOST_CARDS = 60
/** The filters are of what is loaded, so that is all of them; above this, the rest comes as one scrolls. */
const MOST_LOADED = 10_000

const COLUMNS: readonly Column<Backend>[] = [
  { name: 'Backend', width: 'minmax(0, 1.6fr)', cell: ({ name }) => <Name text={name} /> },
  { name: 'Kind', width: 'minmax(0, 1fr)', from: 480, cell: ({ type }) => <Name text={type} /> },
  { name: 'State', width: '172px', cell: (row) => <BackendStatus row={row} /> },
  { name: 'Live', width: '56px', from: 560, cell: ({ live }) => live.toLocaleString('en') },
  { name: 'Last end', width: '88px', from: 680, cell: (row) => <Time at={row.last_revocation} /> },
  {
    name: 'Last failed end',
    width: '112px',
    from: 800,
    cell: (row) => <Time at={row.last_revocation_failure?.at} none="none" />,
  },
  {
    name: 'Its secret',
    width: '88px',
    from: 920,
    cell: (row) => <Time at={row.health?.secret_since} none="none" />,
  },
]

/** All backends: which work, what they hold, and how well they end it. */
export function Backends() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const [{ new: added, change, ...filters }, setFilters] = useFilters(FILTERS)
  // In small pages: the server counts the credentials of each.
  const list = useList('GET /v1/admin/backends')
  useAllPages(list, MOST_LOADED)
  const refused = useRefusal('createBackend')
  const now = useNow(30_000)
  const all = list.data ?? []
  const rows = matching(all, filters, now)
  const waiting = all.filter((one) => needsPerson(one, now)).length
  useEntries([
    { name: 'Add a backend', group: 'Here', run: () => go(paths.newBackend()), refused },
    {
      name: 'Show backends that need a person',
      group: 'Here',
      run: () => setFilters({ state: 'attention' }),
    },
  ])
  const detail =
    id !== undefined ? (
      <BackendDetail
        key={id}
        name={id}
        isChanging={change !== undefined}
        back={withQuery(paths.backends(), filters)}
      />
    ) : added !== undefined ? (
      <AddBackend kind={added === '1' ? undefined : added} back={withQuery(paths.backends(), filters)} />
    ) : undefined
  const open = (name: string) => withQuery(paths.backend(name), filters)
  return (
    <Page
      title="Backends"
      subtitle={
        list.data === undefined ? undefined : <Count all={all.length} shown={rows.length} waiting={waiting} />
      }
      actions={
        <>
          <Button look="primary" refused={refused} onClick={() => go(paths.newBackend())}>
            Add a backend
          </Button>
          <CopyAs command="mayfly backend ls" request="GET /v1/admin/backends" />
        </>
      }
      filters={<BackendFilters backends={all} filters={filters} onChange={setFilters} />}
    >
      <Split
        detail={detail}
        list={
          <Listed read={list} isEmpty={rows.length === 0} empty={<NoBackends isEmpty={all.length === 0} />}>
            {all.length <= MOST_CARDS ? (
              <Cards rows={rows} openName={id} hrefOf={open} />
            ) : (
              <List
                label="Backends"
                rows={rows}
                columns={COLUMNS}
                keyOf={(row) => row.name}
                isBad={(row) => row.unended !== undefined}
                openKey={id}
                onOpen={(row) => go(open(row.name))}
                more={moreOf(list)}
              />
            )}
          </Listed>
        }
      />
    </Page>
  )
}

function Count(props: { readonly all: number; readonly shown: number; readonly waiting: number }) {
  const { all, shown, waiting } = props
  return (
    <>
      {shown === all
        ? all.toLocaleString('en')
        : `${shown.toLocaleString('en')} of ${all.toLocaleString('en')}`}
      {waiting > 0 && ` · ${waiting.toLocaleString('en')} ${waiting === 1 ? 'needs' : 'need'} a person`}
    </>
  )
}

function NoBackends({ isEmpty }: { readonly isEmpty: boolean }) {
  return isEmpty ? (
    <Empty title="No backend yet">
      A backend is where credentials come from: a database, a cloud, a git host. Add one here, or with{' '}
      <code>mayfly backend add KIND</code>. The kind <code>jwt</code> needs no other system.
    </Empty>
  ) : (
    <Empty title="No backend matches">Take a filter off to see the others.</Empty>
  )
}
