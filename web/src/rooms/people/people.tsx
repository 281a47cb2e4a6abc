import { useState } from 'react'
import { useLocation, useParams } from 'wouter'
import type { Operator } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { moreOf, useList } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Provider, whoOf } from '../../ui/person.tsx'
import { ScopesLine } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Invite } from './invite.tsx'
import { PersonDetail } from './person.tsx'

const COLUMNS: readonly Column<Operator>[] = [
  {
    name: 'Name',
    width: 'minmax(0, 1.2fr)',
    cell: ({ name, sso }) =>
      sso == null ? (
        <Name text={name} />
      ) : (
        <span className="flex items-center gap-2">
          <Name text={name} />
          <Provider name={sso.provider} />
        </span>
      ),
  },
  { name: 'Known as', width: 'minmax(0, 1.6fr)', from: 480, cell: (row) => <Name text={whoOf(row)} /> },
  {
    name: 'Administers',
    width: 'minmax(0, 1.6fr)',
    from: 760,
    cell: ({ scopes }) => <ScopesLine scopes={scopes} />,
  },
  {
    name: 'May grant',
    width: 'minmax(0, 1fr)',
    from: 1_000,
    cell: ({ backend_scopes }) => <ScopesLine scopes={backend_scopes} />,
  },
  {
    name: 'Last login',
    width: '112px',
    cell: ({ joined_at, last_login }) =>
      joined_at === null ? <Status look="wait">invited</Status> : <Time at={last_login} />,
  },
]

/** Who administers Mayfly, with what, and when they last did. */
export function People() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const [isInviting, setInviting] = useState(false)
  const list = useList('GET /v1/admin/operators')
  const refused = useRefusal('inviteOperator')
  const rows = list.data ?? []
  useEntries([
    {
      name: 'Invite an operator',
      words: 'person add',
      group: 'Here',
      run: () => setInviting(true),
      refused,
    },
  ])
  return (
    <Page
      title="People"
      actions={
        <>
          <Button look="primary" refused={refused} onClick={() => setInviting(true)}>
            Invite…
          </Button>
          <CopyAs command="mayfly operator ls" request="GET /v1/admin/operators" />
        </>
      }
    >
      <Split
        detail={id === undefined ? undefined : <PersonDetail id={id} />}
        list={
          <Listed read={list} lines={5} isEmpty={false}>
            <List
              label="Operators"
              rows={rows}
              columns={COLUMNS}
              keyOf={(row) => row.id}
              openKey={rows.find((row) => row.id === id || row.email === id)?.id}
              onOpen={(row) => go(paths.person(row.id))}
              more={moreOf(list)}
            />
          </Listed>
        }
      />
      {isInviting && <Invite onClose={() => setInviting(false)} />}
    </Page>
  )
}
