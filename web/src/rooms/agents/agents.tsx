import { useEffect } from 'react'
import { useLocation, useParams } from 'wouter'
import type { Agent } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { useNow } from '../../ui/clock.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Name } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { AgentDetail } from './agent.tsx'
import { AgentFilters } from './filter-bar.tsx'
import { FILTERS, type Filters, isShown, SHOWN } from './filters.ts'
import { NewAgent } from './new-agent.tsx'

const COLUMNS: readonly Column<Agent>[] = [
  { name: 'Agent', width: 'minmax(0, 1.6fr)', cell: ({ name }) => <Name text={name} /> },
  {
    name: 'Owner',
    width: 'minmax(0, 1.4fr)',
    from: 900,
    cell: ({ owner }) => <Name text={owner?.replace(/^operator:/, '') ?? ''} />,
  },
  {
    name: 'Holds',
    width: '64px',
    cell: ({ live }) =>
      live === undefined ? '' : live === 0 ? <span className="text-muted">0</span> : `${live}`,
  },
  { name: 'Last use', width: '84px', from: 480, cell: ({ last_used }) => <Time at={last_used} /> },
  {
    name: 'From',
    width: '128px',
    from: 1_000,
    cell: ({ last_used_from }) => <Name text={last_used_from ?? '–'} mono />,
  },
  { name: 'Policy', width: 'minmax(0, 1fr)', from: 760, cell: ({ policy }) => <Name text={policy ?? '–'} /> },
  {
    name: 'Ends',
    width: '148px',
    from: 620,
    cell: ({ created_at, expires_at }) => <Life from={created_at} until={expires_at} />,
  },
]

/** All agents: who may ask for credentials, and when they last did. */
export function Agents() {
  const { id: name } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [{ new: isNew }] = useFilters(['new'])
  const [filters, setFilters] = useFilters(FILTERS)
  const list = useList('GET /v1/admin/agents', { limit: 1_000 })
  const now = useNow(60_000)
  const refused = useRefusal('createAgent')
  const isFiltered = FILTERS.some((one) => filters[one] !== undefined)
  const rows = (list.data ?? []).filter((agent) => isShown(agent, filters, now))
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  // The server does not filter agents: what is asked for may be on any page.
  const isSeeking = isFiltered && hasNextPage && !isFetchingNextPage
  useEffect(() => {
    if (isSeeking) void fetchNextPage()
  }, [isSeeking, fetchNextPage])
  return (
    <Page
      title="Agents"
      subtitle={list.data === undefined ? undefined : subtitleOf(rows.length, list.data.length, hasNextPage)}
      actions={
        <>
          <Button look="primary" refused={refused} onClick={() => go(paths.newAgent())}>
            Create an agent
          </Button>
          <CopyAs command={commandOf(filters)} request="GET /v1/admin/agents" />
        </>
      }
      filters={<AgentFilters filters={filters} agents={list.data ?? []} onChange={setFilters} />}
    >
      <Split
        detail={
          name !== undefined ? (
            <AgentDetail name={name} back={keep(paths.agents())} />
          ) : isNew !== undefined ? (
            <NewAgent />
          ) : undefined
        }
        list={
          <Listed
            read={list}
            isComing={list.data === undefined || (rows.length === 0 && isFiltered && hasNextPage)}
            isEmpty={rows.length === 0}
            empty={<NoAgents isFiltered={isFiltered} />}
          >
            <List
              label="Agents"
              rows={rows}
              columns={COLUMNS}
              keyOf={(row) => row.id}
              openKey={rows.find((row) => row.name === name)?.id}
              onOpen={(row) => go(keep(paths.agent(row.name)))}
              more={moreOf(list)}
            />
          </Listed>
        }
      />
    </Page>
  )
}

function subtitleOf(shown: number, all: number, hasMore: boolean): string {
  const total = `${all.toLocaleString('en')}${hasMore ? ' and more' : ''}`
  return shown === all ? total : `${shown.toLocaleString('en')} of ${total}`
}

function commandOf({ name, backend, show }: Filters): string {
  const flag = show === undefined ? '' : (SHOWN[show]?.flag ?? '')
  return ['mayfly agent ls', name && `'*${name}*'`, backend && `--backend ${backend}`, flag]
    .filter(Boolean)
    .join(' ')
}

function NoAgents({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No agent matches">Take a filter off.</Empty>
  return (
    <Empty title="There are no agents yet">
      Create one here or by <code>mayfly agent create NAME --scope BACKEND</code> or run{' '}
      <code>mayfly enroll --server {location.origin}</code> on its machine and decide in the inbox.
    </Empty>
  )
}
