import type { Setting } from '../../../../src/client/wire.ts'
import { useRead } from '../../api/queries.ts'
import { useFilters } from '../../ui/address.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Input, Select } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Page } from '../../ui/page.tsx'
import { Prose } from '../../ui/prose.tsx'
import { Hostile } from '../../ui/text.tsx'
import { Nodes } from './nodes.tsx'

/** What is in force on the node that answers, and where each value comes from. */
export function SettingsRoom() {
  const [filters, setFilters] = useFilters(['q', 'origin'])
  const { data, error, refetch } = useRead('GET /v1/admin/settings')
  const all = data?.settings ?? []
  const rows = all.filter((one) => isWanted(one, filters))
  return (
    <Page
      title="Settings"
      subtitle={
        data === undefined ? undefined : `in force; ${all.filter(isSet).length} of ${all.length} are set`
      }
      actions={<CopyAs command="mayfly config show" request="GET /v1/admin/settings" />}
      filters={
        <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
          <Input
            type="search"
            aria-label="Name, value or meaning"
            placeholder="Name, value or meaning"
            className="max-sm:col-span-2 sm:w-56!"
            data-filter
            value={filters.q ?? ''}
            onChange={({ target }) => setFilters({ q: target.value })}
          />
          <Select
            aria-label="Where they come from"
            className="sm:w-auto!"
            value={filters.origin ?? ''}
            onChange={({ target }) => setFilters({ origin: target.value })}
          >
            <option value="">All settings</option>
            <option value="set">Those that are set</option>
            <option value="default">Defaults</option>
          </Select>
        </div>
      }
    >
      <div className="h-full overflow-y-auto">
        <Nodes />
        {error !== null && (
          <div className="p-4">
            <ErrorNote error={error} retry={() => void refetch()} />
          </div>
        )}
        {data === undefined && error === null && (
          <div className="p-4">
            <Skeleton lines={12} />
          </div>
        )}
        {data !== undefined && rows.length === 0 && (
          <Empty title="No setting matches">Take a filter off to see the others.</Empty>
        )}
        {rows.length > 0 && <SettingsTable rows={rows} />}
      </div>
    </Page>
  )
}

const isSet = ({ origin }: Setting): boolean => origin !== 'default' && origin !== 'derived'

function isWanted(
  one: Setting,
  { q, origin }: Readonly<Record<'q' | 'origin', string | undefined>>,
): boolean {
  const text = `${one.name} ${one.value} ${one.description} ${one.origin}`.toLowerCase()
  return (
    (q === undefined || text.includes(q.toLowerCase())) &&
    (origin === undefined || isSet(one) === (origin === 'set'))
  )
}

/** Wide: a row each; narrow: one under the other. */
function SettingsTable({ rows }: { readonly rows: readonly Setting[] }) {
  return (
    <table className="w-full table-fixed border-collapse text-sm max-md:block">
      <caption className="sr-only">Settings in force</caption>
      <thead className="sticky top-0 z-10 bg-canvas text-left text-xs text-muted max-md:hidden">
        <tr className="border-b border-line">
          <th className="h-8 w-2/5 px-4 font-normal">Setting</th>
          <th className="px-4 font-normal">Value</th>
          <th className="w-1/6 px-4 font-normal">From</th>
          <th className="w-44 px-4 font-normal">A new value is taken by</th>
        </tr>
      </thead>
      <tbody className="max-md:block">
        {rows.map((one) => (
          <tr
            key={one.name}
            className="border-b border-line/60 align-top max-md:grid max-md:gap-0.5 max-md:px-4 max-md:py-2"
          >
            <th scope="row" className="px-4 py-2 text-left font-normal max-md:p-0">
              <code className="font-semibold">{one.name}</code>
              <span className="block text-xs text-muted">
                <Prose text={one.description} />
              </span>
            </th>
            <td className="px-4 py-2 max-md:p-0">
              <code className={`text-xs ${isSet(one) ? 'font-semibold' : ''}`}>
                {one.value === '' || one.value === '[]' ? (
                  <span className="text-muted">none</span>
                ) : (
                  <Hostile text={one.value} />
                )}
              </code>
            </td>
            <td className="px-4 py-2 [overflow-wrap:anywhere] max-md:p-0">
              <span className={isSet(one) ? '' : 'text-muted'}>{visible(one.origin)}</span>
            </td>
            <td className="px-4 py-2 whitespace-nowrap text-muted max-md:hidden">
              {one.reload ? 'a reload' : 'a restart'}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
