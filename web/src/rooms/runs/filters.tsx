import { Select } from '../../ui/fields.tsx'
import { NameFilter } from '../../ui/name-filter.tsx'
import { word } from '../../ui/word.ts'

export const FILTERS = ['agent', 'state'] as const
export type Filters = Readonly<Record<(typeof FILTERS)[number], string | undefined>>

/** Without a state, the list is of those that live. */
export function queryOf({ agent, state = 'running' }: Filters): Record<string, string> {
  return { ...(agent === undefined ? {} : { agent }), ...(state === 'any' ? {} : { state }) }
}

export function commandOf({ agent, state = 'running' }: Filters): string {
  return [
    'mayfly runs ls',
    ...(agent === undefined ? [] : [`--agent ${word(agent)}`]),
    `--state ${state === 'any' ? 'all' : word(state)}`,
  ].join(' ')
}

interface Props {
  readonly filters: Filters
  readonly onChange: (changes: Partial<Filters>) => void
}

export function RunFilters({ filters, onChange }: Props) {
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
      <NameFilter label="Agent" value={filters.agent} onChange={(agent) => onChange({ agent })} isFirst />
      <Select
        aria-label="State"
        className="sm:w-auto!"
        value={filters.state ?? ''}
        onChange={({ target: { value } }) => onChange({ state: value === '' ? undefined : value })}
      >
        <option value="">Running</option>
        <option value="ended">Ended</option>
        <option value="any">All</option>
      </Select>
    </div>
  )
}
