import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { AgentKey } from '../../../../src/client/wire.ts'
import { useAllPages } from '../../api/all-pages.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Input } from '../../ui/fields.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { AgentKeyDetail } from './agent-key.tsx'
import { IssuerKeys } from './issuer-keys.tsx'
import { RotateKeys } from './rotate.tsx'

const COLUMNS: readonly Column<AgentKey>[] = [
  { name: 'Agent', width: 'minmax(0, 1fr)', cell: ({ name }) => <Name text={name} /> },
  { name: 'Key', width: '160px', cell: ({ key_id }) => <Name text={key_id} mono /> },
  { name: 'Signs as', width: 'minmax(0, 1.4fr)', from: 620, cell: ({ email }) => <Name text={email} /> },
  { name: 'Made', width: '84px', from: 460, cell: ({ created_at }) => <Time at={created_at} /> },
]

/** The filter is of what is loaded, so that is all of them; above this, the rest comes as one scrolls. */
const MOST_LOADED = 10_000

/** The keys that sign access tokens, and those that agents sign commits with. */
export function KeysRoom() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [{ q }, setFilters] = useFilters(['q'])
  const [isRotating, setRotating] = useState(false)
  const list = useList('GET /v1/admin/keys', { limit: 1_000 })
  useAllPages(list, MOST_LOADED)
  const refused = useRefusal('rotateKeys')
  const rows = (list.data ?? []).filter((row) => isWanted(row, q))
  useEntries([
    {
      name: 'Sign access tokens with a new key',
      words: 'rotate issuer',
      group: 'Here',
      run: () => setRotating(true),
      refused,
    },
  ])
  return (
    <Page
      title="Keys"
      actions={
        <>
          <Button refused={refused} onClick={() => setRotating(true)}>
            Sign with a new key
          </Button>
          <CopyAs command={'mayfly keys ls\nmayfly keys rotate'} request="GET /v1/admin/keys/issuer" />
        </>
      }
    >
      <Split
        detail={
          id === undefined ? undefined : (
            <AgentKeyDetail
              id={id}
              row={list.data?.find((one) => one.key_id === id)}
              isLoaded={list.data !== undefined}
              back={keep(paths.keys())}
            />
          )
        }
        list={
          <div className="grid h-full grid-rows-[auto_auto_minmax(0,1fr)]">
            <IssuerKeys />
            <div className="flex flex-wrap items-center justify-between gap-2 border-b border-line px-4 pt-4 pb-2">
              <h2 className="text-base">Signing keys of agents</h2>
              <Input
                type="search"
                aria-label="Agent, address or key"
                placeholder="Agent, address or key"
                className="w-56!"
                data-filter
                value={q ?? ''}
                onChange={({ target }) => setFilters({ q: target.value })}
              />
            </div>
            <Listed
              read={list}
              lines={8}
              isEmpty={rows.length === 0}
              empty={<NoKeys isFiltered={q !== undefined} />}
            >
              <List
                label="Signing keys of agents"
                rows={rows}
                columns={COLUMNS}
                keyOf={(row) => row.key_id}
                openKey={id}
                onOpen={(row) => go(keep(paths.key(row.key_id)))}
                more={moreOf(list)}
              />
            </Listed>
          </div>
        }
      />
      {isRotating && <RotateKeys onClose={() => setRotating(false)} />}
    </Page>
  )
}

const isWanted = ({ name, email, key_id }: AgentKey, q: string | undefined): boolean =>
  q === undefined || `${name} ${email} ${key_id}`.toLowerCase().includes(q.toLowerCase())

function NoKeys({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No key matches">Take the filter off to see the others.</Empty>
  ) : (
    <Empty title="No agent signs yet">
      Every agent gets a key when it is created, and signs its commits with <code>mayfly git</code>.
    </Empty>
  )
}
