import { useLocation, useParams } from 'wouter'
import type { Plugin } from '../../../../src/client/wire.ts'
import { useMe, useRefusal } from '../../api/me.ts'
import { refresh, useList } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters, useKeepingQuery } from '../../ui/address.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Input, Select } from '../../ui/fields.tsx'
import { type Column, List } from '../../ui/list.tsx'
import { Listed } from '../../ui/listed.tsx'
import { Empty } from '../../ui/notes.tsx'
import { tell, tellFailure } from '../../ui/notices.tsx'
import { Page, Split } from '../../ui/page.tsx'
import { Name } from '../../ui/text.tsx'
import { KindDetail } from './detail.tsx'
import { endOf, type KindRow, useKindList } from './use-kinds.ts'

const COLUMNS: readonly Column<KindRow>[] = [
  { name: 'Title', width: 'minmax(0, 1.5fr)', cell: ({ title }) => <Name text={title} /> },
  { name: 'Kind', width: 'minmax(0, 1fr)', cell: ({ type }) => <Name text={type} mono /> },
  {
    name: 'When revoked',
    width: '148px',
    from: 480,
    cell: ({ revocation }) => endOf(revocation),
  },
  {
    name: 'A credential may',
    width: 'minmax(0, 2fr)',
    from: 860,
    cell: ({ scopes }) => <Name text={scopes.forms[0]?.gives ?? ''} />,
  },
  {
    name: 'Comes from',
    width: 'minmax(0, 1fr)',
    from: 640,
    cell: ({ plugin }) => <Name text={originOf(plugin)} />,
  },
]

const originOf = (plugin: Plugin | undefined): string =>
  plugin === undefined ? '' : plugin.builtin ? 'Mayfly' : (plugin.origin ?? 'a plugin')

/** Every kind of backend: what it gives, what it can end, and where it comes from. */
export function Kinds() {
  const { id } = useParams<{ id?: string }>()
  const [, go] = useLocation()
  const keep = useKeepingQuery()
  const [filters, setFilters] = useFilters(['q', 'from'])
  const me = useMe()
  const list = useKindList()
  const maySee = me?.operations.includes('listPlugins') === true
  const plugins = useList('GET /v1/admin/plugins', { limit: 1_000 }, { enabled: maySee }).data
  const refused = useRefusal('reloadPlugins')
  const all = (list.data ?? []).map((kind) => ({
    ...kind,
    plugin: plugins?.find(({ name }) => name === kind.type),
  }))
  const rows = all.filter((row) => isWanted(row, filters))
  const reload = async () => {
    try {
      const { loaded } = await admin.plugins.reloadAll()
      await refresh('GET /v1/admin/plugins', 'GET /v1/admin/kinds', 'GET /v1/admin/backends')
      tell(`${loaded} kinds are loaded; every backend is opened again.`)
    } catch (error) {
      tellFailure(error)
    }
  }
  useEntries([
    {
      name: 'Open every backend again',
      words: 'reload plugins',
      group: 'Here',
      run: () => void reload(),
      refused,
    },
  ])
  const opened = all.find(({ type }) => type === id)
  return (
    <Page
      title="Kinds and plugins"
      subtitle={list.data === undefined ? undefined : `${rows.length} of ${all.length}`}
      actions={
        <>
          <Button refused={refused} onClick={() => void reload()}>
            Reload plugins
          </Button>
          <CopyAs command={'mayfly kind ls\nmayfly plugin ls'} request="GET /v1/admin/kinds" />
        </>
      }
      filters={
        <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
          <Input
            type="search"
            aria-label="Name, title or what it gives"
            placeholder="Name, or what it gives"
            className="max-sm:col-span-2 sm:w-56!"
            data-filter
            value={filters.q ?? ''}
            onChange={({ target }) => setFilters({ q: target.value })}
          />
          <Select
            aria-label="Where it comes from"
            className="sm:w-auto!"
            value={filters.from ?? ''}
            onChange={({ target }) => setFilters({ from: target.value })}
          >
            <option value="">From anywhere</option>
            <option value="plugin">Plugins</option>
            <option value="mayfly">Mayfly</option>
          </Select>
        </div>
      }
    >
      <Split
        detail={
          id === undefined ? undefined : (
            <KindDetail
              key={id}
              type={id}
              row={opened}
              isLoaded={list.data !== undefined}
              back={keep(paths.kinds())}
            />
          )
        }
        list={
          <Listed
            read={list}
            lines={12}
            isEmpty={rows.length === 0}
            empty={<NoKinds isPlugin={filters.from === 'plugin'} />}
          >
            <List
              label="Kinds"
              rows={rows}
              columns={COLUMNS}
              keyOf={(row) => row.type}
              openKey={id}
              onOpen={(row) => go(keep(paths.kind(row.type)))}
            />
          </Listed>
        }
      />
    </Page>
  )
}

function isWanted(row: KindRow, { q, from }: Readonly<Record<'q' | 'from', string | undefined>>): boolean {
  const text = [row.type, row.title, ...row.scopes.forms.map(({ gives }) => gives)].join(' ').toLowerCase()
  const isPlugin = row.plugin?.builtin === false
  return (
    (q === undefined || text.includes(q.toLowerCase())) &&
    (from === undefined || (from === 'plugin' ? isPlugin : !isPlugin))
  )
}

function NoKinds({ isPlugin }: { readonly isPlugin: boolean }) {
  return isPlugin ? (
    <Empty title="No plugin is added">
      A plugin is a kind from outside, pinned to its SHA-256. Add one on the machine of the server:{' '}
      <code>mayfly plugin add npm:PACKAGE@VERSION</code>
    </Empty>
  ) : (
    <Empty title="No kind matches">Take a filter off to see the others.</Empty>
  )
}
