import { useRef, useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { AuditEntry } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { useKeys } from '../../ui/keys.ts'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Mark } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { exact } from '../../ui/times.ts'
import { ActivityChart } from './chart.tsx'
import { EntryDetail } from './entry.tsx'
import { ExportDialog } from './export.tsx'
import { ActivityFilters } from './filters.tsx'
import { useFollow } from './follow.ts'
import { commandOf, FILTERS, type Filters, queryOf } from './query.ts'
import { Story } from './story.tsx'
import { actorOf, factOf, lookOf, wordsOf } from './words.ts'

const COLUMNS: readonly Column<AuditEntry>[] = [
  { name: 'When', width: '72px', cell: ({ timestamp }) => <Time at={timestamp} /> },
  {
    name: 'UTC',
    width: '124px',
    from: 960,
    // Without the year, which hardly anybody asks for: the entry has it.
    cell: ({ timestamp }) => (
      <span className="text-sm text-muted">{exact(Date.parse(timestamp)).slice(5, -' UTC'.length)}</span>
    ),
  },
  {
    name: 'What',
    width: 'minmax(216px, 1.5fr)',
    cell: (entry) => (
      <span className="flex items-baseline gap-2">
        <Mark look={lookOf(entry)} />
        <Name text={wordsOf(entry.action)} />
        {entry.outcome !== 'ok' && <span className="text-muted">{entry.outcome}</span>}
      </span>
    ),
  },
  {
    name: 'Agent',
    width: 'minmax(0, 1fr)',
    from: 480,
    cell: ({ agent_name, agent_id }) => <Name text={agent_name ?? agent_id ?? ''} />,
  },
  {
    name: 'Backend',
    width: 'minmax(0, 0.8fr)',
    from: 620,
    cell: ({ backend }) => <Name text={backend ?? ''} />,
  },
  { name: 'Who did it', width: 'minmax(0, 1fr)', from: 760, cell: (entry) => <Name text={actorOf(entry)} /> },
  { name: 'More', width: 'minmax(0, 1.2fr)', from: 900, cell: (entry) => <Name text={factOf(entry)} mono /> },
]

/** The audit: who did what, from where, and how it ended. */
export function Activity() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [filters, setFilters] = useFilters(FILTERS)
  const [isFollowing, setFollowing] = useState(false)
  const [isExporting, setExporting] = useState(false)
  const exportRefused = useRefusal('exportAudit')
  const followRefused =
    useRefusal('followEvents') ??
    (filters.until === undefined ? undefined : 'This time is over: take the filter "until" off.')
  const follows = isFollowing && followRefused === undefined
  const toggle = () => setFollowing(!isFollowing)
  useKeys({ F: followRefused === undefined ? toggle : undefined })
  const here = (name: string, run: () => void, refused?: string) => ({
    name,
    group: 'Here' as const,
    run,
    refused,
  })
  useEntries([
    { ...here(isFollowing ? 'Stop following' : 'Follow what happens', toggle, followRefused), hotkey: 'F' },
    here('Download the audit', () => setExporting(true), exportRefused),
    here('Show what was denied', () => setFilters({ action: 'credential.issue_failed' })),
    here('Show what the upstream did not revoke', () => setFilters({ action: 'credential.revoke_failed' })),
    here('Show all activity', () => go(paths.activity())),
  ])
  const query = queryOf(filters)
  return (
    <Page
      title="Activity"
      actions={
        <>
          {filters.credential === undefined && (
            <Button
              look={follows ? 'primary' : 'plain'}
              aria-pressed={follows}
              hotkey="F"
              refused={followRefused}
              onClick={toggle}
            >
              {follows ? 'Following' : 'Follow'}
            </Button>
          )}
          <Button refused={exportRefused} onClick={() => setExporting(true)}>
            Download
          </Button>
          <CopyAs
            command={commandOf(filters, follows)}
            request={`GET /v1/admin/${follows ? 'events' : 'audit'}?${new URLSearchParams(query)}`}
          />
        </>
      }
      filters={<ActivityFilters filters={filters} onChange={setFilters} />}
    >
      {filters.credential === undefined ? (
        <Timeline filters={filters} setFilters={setFilters} follows={follows} openId={id} />
      ) : (
        <Split
          detail={
            id === undefined ? undefined : (
              <EntryDetail id={id} known={undefined} back={keep(paths.activity())} />
            )
          }
          list={<Story id={filters.credential} query={query} />}
        />
      )}
      {isExporting && <ExportDialog filters={filters} onClose={() => setExporting(false)} />}
    </Page>
  )
}

interface TimelineProps {
  readonly filters: Filters
  readonly setFilters: (changes: Partial<Filters>) => void
  readonly follows: boolean
  readonly openId: string | undefined
}

function Timeline({ filters, setFilters, follows, openId }: TimelineProps) {
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const box = useRef<HTMLDivElement>(null)
  const list = useList('GET /v1/admin/audit', queryOf(filters))
  const { waiting, show, onScrollCapture } = useFollow(filters, follows)
  const rows = list.data ?? []
  const showNew = () => {
    box.current?.querySelector('[role="grid"]')?.scrollTo({ top: 0 })
    show()
  }
  return (
    <div className="grid h-full min-h-0 grid-cols-[minmax(0,1fr)] grid-rows-[auto_minmax(0,1fr)]">
      <ActivityChart filters={filters} isBesideDetail={openId !== undefined} onBrush={setFilters} />
      <Split
        detail={
          openId === undefined ? undefined : (
            <EntryDetail
              id={openId}
              known={rows.find((row) => row.id === openId)}
              back={keep(paths.activity())}
            />
          )
        }
        list={
          <div ref={box} className="relative h-full min-h-0" onScrollCapture={onScrollCapture}>
            <p role="status" className="absolute inset-x-0 top-9 z-20 flex justify-center">
              {waiting > 0 && (
                <Button look="primary" className="shadow-float" onClick={showNew}>
                  {waiting === 1 ? '1 new entry' : `${waiting.toLocaleString('en')} new entries`}
                </Button>
              )}
            </p>
            <Listed
              read={list}
              isEmpty={rows.length === 0}
              empty={<NoEntries isFiltered={Object.keys(queryOf(filters)).length > 0} />}
            >
              <List
                label="Activity"
                rows={rows}
                columns={COLUMNS}
                keyOf={(row) => row.id}
                isBad={(row) => lookOf(row) === 'bad'}
                openKey={openId}
                onOpen={(row) => go(keep(paths.entry(row.id)))}
                more={moreOf(list)}
              />
            </Listed>
          </div>
        }
      />
    </div>
  )
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="Nothing matches">Take a filter off, or look at a longer time.</Empty>
  ) : (
    <Empty title="Nothing has happened yet">
      Everything that agents and people do is recorded here: also <code>mayfly audit --follow</code>
    </Empty>
  )
}
