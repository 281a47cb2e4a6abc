import { useLocation, useParams } from 'wouter'
import type { Policy } from '../../../../src/client/wire.ts'
import { moreOf, useList, useRead } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { linesOf } from '../../ui/fields.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { ScopesLine } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Name } from '../../ui/text.tsx'
import { Outcome } from './outcome.tsx'
import { PolicyDetail } from './policy.tsx'
import { TryOut } from './try-out.tsx'

interface Row {
  readonly policy: Policy
  /** Its place in the order in which policies decide. */
  readonly place: number
  /** What it has to do with the name that is tried; undefined: none is. */
  readonly role: 'decides' | 'matches' | 'other' | undefined
}

const COLUMNS: readonly Column<Row>[] = [
  { name: '#', width: '28px', from: 480, cell: ({ place }) => <span className="text-muted">{place}</span> },
  { name: 'Policy', width: 'minmax(0, 1fr)', cell: ({ policy: { name } }) => <Name text={name} /> },
  { name: 'Names', width: 'minmax(0, 1fr)', cell: ({ policy: { pattern } }) => <Name text={pattern} mono /> },
  {
    name: 'Approves',
    width: 'clamp(116px, 12vw, 132px)',
    cell: ({ policy, role }) => <Approves policy={policy} role={role} />,
  },
  {
    name: 'Scopes',
    width: 'minmax(0, 2fr)',
    from: 720,
    cell: ({ policy: { scopes } }) => <ScopesLine scopes={scopes} />,
  },
  {
    name: 'Lives',
    width: '84px',
    from: 900,
    cell: ({ policy: { max_agent_lifetime } }) => max_agent_lifetime ?? 'no end',
  },
]

/** The policies in the order in which they decide, and what they would decide. They are changed in the configuration. */
export function Policies() {
  const { id: name } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [tried, setTried] = useFilters(['name', 'scope'])
  const list = useList('GET /v1/admin/policies', { limit: 1_000 })
  const scopes = linesOf(tried.scope ?? '')
  const asked = { query: { name: tried.name, scope: scopes.length === 0 ? undefined : scopes } }
  const explained = useRead('GET /v1/admin/policies/explain', asked, { enabled: tried.name !== undefined })
  const explanation = tried.name === undefined ? undefined : explained.data
  const rows = (list.data ?? []).map((policy, index): Row => {
    const found = explanation?.policies.find((one) => one.name === policy.name)
    const role =
      found === undefined ? undefined : found.decides ? 'decides' : found.matches ? 'matches' : 'other'
    return { policy, place: index + 1, role }
  })
  return (
    <Page
      title="Policies"
      subtitle="the first that matches a name decides"
      actions={
        <CopyAs
          command={commandOf(tried.name, scopes)}
          request={tried.name === undefined ? 'GET /v1/admin/policies' : explainRequest(tried.name, scopes)}
        />
      }
      filters={
        <TryOut key={`${tried.name} ${tried.scope}`} name={tried.name} scope={tried.scope} onTry={setTried} />
      }
    >
      <Split
        detail={
          name === undefined ? undefined : (
            <PolicyDetail
              name={name}
              policy={rows.find(({ policy }) => policy.name === name)?.policy}
              isRead={list.data !== undefined}
              back={keep(paths.policies())}
            />
          )
        }
        list={
          <div className="grid h-full min-h-0 grid-rows-[auto_minmax(0,1fr)]">
            <div>
              {tried.name !== undefined && (
                <div className="border-b border-line bg-surface px-4 py-3">
                  {explained.error !== null ? (
                    <ErrorNote error={explained.error} />
                  ) : explanation === undefined ? (
                    <Skeleton lines={2} />
                  ) : (
                    <Outcome explanation={explanation} />
                  )}
                </div>
              )}
            </div>
            <Listed read={list} lines={6} isEmpty={rows.length === 0} empty={<NoPolicies />}>
              <List
                label="Policies"
                rows={rows}
                columns={COLUMNS}
                keyOf={({ policy }) => policy.name}
                openKey={name}
                onOpen={({ policy }) => go(keep(paths.policy(policy.name)))}
                more={moreOf(list)}
              />
            </Listed>
          </div>
        }
      />
    </Page>
  )
}

function Approves({ policy, role }: { readonly policy: Policy; readonly role: Row['role'] }) {
  if (role === 'decides') return <Status look="ok">decides</Status>
  if (role === 'matches') return <Status look="off">too late</Status>
  if (role === 'other') return <Status look="off">other names</Status>
  return <>{policy.auto_approve ? 'at once' : 'a person does'}</>
}

function commandOf(name: string | undefined, scopes: readonly string[]): string {
  if (name === undefined) return 'mayfly policy check mayfly.yaml\nmayfly policy explain NAME'
  return `mayfly policy explain ${name}${scopes.map((one) => ` --scope '${one}'`).join('')}`
}

const explainRequest = (name: string, scopes: readonly string[]): string =>
  `GET /v1/admin/policies/explain?${new URLSearchParams([['name', name], ...scopes.map((one) => ['scope', one])])}`

function NoPolicies() {
  return (
    <Empty title="There are no policies">
      Every enrollment waits in the inbox. A policy in the configuration file approves by itself what you
      trust; <code>mayfly policy check mayfly.yaml</code> checks it, and <code>mayfly server reload</code>{' '}
      takes it.
    </Empty>
  )
}
