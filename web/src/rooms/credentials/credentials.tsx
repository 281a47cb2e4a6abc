import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { Token } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { EndAll } from '../../ui/end-all.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { ScopesLine } from '../../ui/scopes.tsx'
import { Name } from '../../ui/text.tsx'
import { Life, Time } from '../../ui/time.tsx'
import { word } from '../../ui/word.ts'
import { CredentialDetail } from './detail.tsx'
import { EndSelected } from './end.tsx'
import { CredentialFilters, FILTERS, queryOf } from './filters.tsx'
import { CredentialStatus, isUnended } from './status.tsx'

const COLUMNS: readonly Column<Token>[] = [
  { name: 'Agent', width: 'minmax(0, 1.4fr)', cell: ({ agent_name }) => <Name text={agent_name} /> },
  { name: 'Backend', width: 'minmax(0, 1fr)', cell: ({ backend }) => <Name text={backend} /> },
  {
    name: 'Scopes',
    width: 'minmax(0, 2fr)',
    from: 900,
    cell: ({ scopes }) => <ScopesLine scopes={scopes} />,
  },
  { name: 'State', width: 'clamp(96px, 12vw, 132px)', cell: (row) => <CredentialStatus row={row} /> },
  { name: 'Issued', width: '84px', from: 620, cell: ({ created_at }) => <Time at={created_at} /> },
  {
    name: 'Ends',
    width: '148px',
    from: 480,
    cell: ({ status, created_at, expires_at, ended_at }) =>
      status === 'active' ? (
        <Life from={created_at} until={expires_at} />
      ) : (
        <Time at={ended_at} none="ended" />
      ),
  },
]

/** All credentials: who holds what, until when, and what could not be ended. */
export function Credentials() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [filters, setFilters] = useFilters(FILTERS)
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [ending, setEnding] = useState<'selected' | 'all'>()
  const query = queryOf(filters)
  const list = useList('GET /v1/admin/tokens', query)
  const refused = useRefusal('revokeAnyCredential')
  const rows = list.data ?? []
  // That of an agent would be more than the part of a run.
  const mayEndAll =
    filters.run === undefined && (filters.agent !== undefined || filters.backend !== undefined)
  useEntries([
    {
      name: 'Show what could not be ended',
      group: 'Here',
      run: () => setFilters({ unended: 'true', status: undefined }),
    },
    { name: 'Show all credentials', group: 'Here', run: () => go(paths.credentials()) },
  ])
  return (
    <Page
      title="Credentials"
      subtitle={filters.status === undefined && filters.unended === undefined ? 'live' : undefined}
      actions={
        <>
          {selected.size > 0 && (
            <Button look="danger" refused={refused} onClick={() => setEnding('selected')}>
              End {selected.size} selected
            </Button>
          )}
          {selected.size === 0 && mayEndAll && (
            <Button look="danger" refused={refused} onClick={() => setEnding('all')}>
              End all of {filters.agent ?? filters.backend}
            </Button>
          )}
          <CopyAs
            command={commandOf(filters)}
            request={`GET /v1/admin/tokens?${new URLSearchParams(query)}`}
          />
        </>
      }
      filters={<CredentialFilters filters={filters} onChange={setFilters} />}
    >
      <Split
        detail={id === undefined ? undefined : <CredentialDetail id={id} back={keep(paths.credentials())} />}
        list={
          <Listed
            read={list}
            isEmpty={rows.length === 0}
            empty={<NoCredentials isFiltered={Object.values(filters).some((one) => one !== undefined)} />}
          >
            <List
              label="Credentials"
              rows={rows}
              columns={COLUMNS}
              keyOf={(row) => row.id}
              nameOf={(row) => `${row.id} of ${row.agent_name}`}
              isBad={isUnended}
              openKey={id}
              onOpen={(row) => go(keep(paths.credential(row.id)))}
              more={moreOf(list)}
              selected={selected}
              onSelect={setSelected}
            />
          </Listed>
        }
      />
      {ending === 'selected' && (
        <EndSelected
          ids={[...selected]}
          onClose={() => setEnding(undefined)}
          onDone={() => setSelected(new Set())}
        />
      )}
      {ending === 'all' && (
        <EndAll agent={filters.agent} backend={filters.backend} onClose={() => setEnding(undefined)} />
      )}
    </Page>
  )
}

/** The command has no filter for what has not ended upstream: it lists all, with what the upstream says. */
function commandOf({
  agent,
  backend,
  run,
  status,
  unended,
}: Readonly<Record<string, string | undefined>>): string {
  const ended = unended !== undefined || status === 'any' ? 'all' : status
  return [
    'mayfly credentials ls',
    agent === undefined ? '--all-agents' : `--agent ${word(agent)}`,
    ...(backend === undefined ? [] : [`--backend ${word(backend)}`]),
    ...(run === undefined ? [] : [`--run ${word(run)}`]),
    ...(ended === undefined ? [] : [`--status ${ended}`]),
  ].join(' ')
}

function NoCredentials({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No credential matches">Take a filter off, or look at those that have ended.</Empty>
  ) : (
    <Empty title="Nobody holds a credential now">
      An agent gets one with <code>mayfly get BACKEND</code>, or hands it to a program with{' '}
      <code>mayfly run -- PROGRAM</code>
    </Empty>
  )
}
