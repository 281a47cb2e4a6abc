import type { Backend } from '../../../../src/client/wire.ts'
import { Input, Select } from '../../ui/fields.tsx'
import type { Wanted } from './state.ts'

export const FILTERS = ['q', 'kind', 'state', 'new', 'change'] as const

interface Props {
  readonly backends: readonly Backend[]
  readonly filters: Wanted
  readonly onChange: (changes: Wanted) => void
}

export function BackendFilters({ backends, filters, onChange }: Props) {
  const kinds = [...new Set(backends.map(({ type }) => type))].sort()
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
      <Input
        type="search"
        aria-label="Name"
        placeholder="Name"
        className="sm:w-44!"
        value={filters.q ?? ''}
        data-filter
        onChange={({ target }) => onChange({ q: target.value || undefined })}
      />
      <Select
        aria-label="Kind"
        className="sm:w-auto!"
        value={filters.kind ?? ''}
        onChange={({ target }) => onChange({ kind: target.value || undefined })}
      >
        <option value="">All kinds</option>
        {kinds.map((kind) => (
          <option key={kind}>{kind}</option>
        ))}
      </Select>
      <Select
        aria-label="State"
        className="sm:w-auto!"
        value={filters.state ?? ''}
        onChange={({ target }) => onChange({ state: target.value || undefined })}
      >
        <option value="">Any state</option>
        <option value="attention">Needs a person</option>
        <option value="down">Down</option>
        <option value="unended">Credentials not ended</option>
        <option value="unused">Not used yet</option>
      </Select>
    </div>
  )
}
