import { Select } from '../../ui/fields.tsx'
import { NameFilter } from '../../ui/name-filter.tsx'

export const FILTERS = ['agent', 'backend', 'run', 'status', 'unended'] as const
type Filters = Readonly<Record<(typeof FILTERS)[number], string | undefined>>

/** Without a state, the list is of those that live. */
export function queryOf({ agent, backend, run, status, unended }: Filters): Record<string, string> {
  const all = {
    agent,
    backend,
    run,
    status: unended === undefined ? (status === 'any' ? undefined : (status ?? 'active')) : undefined,
    unended,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
}

interface Props {
  readonly filters: Filters
  readonly onChange: (changes: Partial<Filters>) => void
}

export function CredentialFilters({ filters, onChange }: Props) {
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
      <NameFilter label="Agent" value={filters.agent} onChange={(agent) => onChange({ agent })} isFirst />
      <NameFilter label="Backend" value={filters.backend} onChange={(backend) => onChange({ backend })} />
      <NameFilter label="Run" value={filters.run} onChange={(run) => onChange({ run })} />
      <Select
        aria-label="State"
        className="sm:w-auto!"
        value={filters.unended === undefined ? (filters.status ?? '') : 'unended'}
        onChange={({ target: { value } }) =>
          onChange(
            value === 'unended'
              ? { unended: 'true', status: undefined }
              : { unended: undefined, status: value === '' ? undefined : value },
          )
        }
      >
        <option value="">Live</option>
        <option value="unended">Not ended upstream</option>
        <option value="revoked">Revoked</option>
        <option value="expired">Expired</option>
        <option value="any">All</option>
      </Select>
    </div>
  )
}
