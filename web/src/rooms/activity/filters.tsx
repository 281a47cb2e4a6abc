import { Select } from '../../ui/fields.tsx'
import { NameFilter } from '../../ui/name-filter.tsx'
import type { Filters } from './query.ts'
import { ACTION_WORDS, type Action } from './words.ts'

const TIMES = [
  ['', 'Any time'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const

interface Props {
  readonly filters: Filters
  readonly onChange: (changes: Partial<Filters>) => void
}

export function ActivityFilters({ filters, onChange }: Props) {
  const { since = '', until } = filters
  const isPreset = until === undefined && TIMES.some(([value]) => value === since)
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
      <NameFilter
        label="Agent"
        value={filters.agent}
        onChange={(agent) => onChange({ agent })}
        isFirst
        width="sm:w-32!"
      />
      <NameFilter
        label="Backend"
        value={filters.backend}
        onChange={(backend) => onChange({ backend })}
        width="sm:w-32!"
      />
      <NameFilter
        label="Who did it"
        value={filters.actor}
        onChange={(actor) => onChange({ actor })}
        width="sm:w-32!"
      />
      <NameFilter
        label="Credential"
        value={filters.credential}
        onChange={(credential) => onChange({ credential })}
        width="sm:w-32!"
      />
      <NameFilter label="Run" value={filters.run} onChange={(run) => onChange({ run })} width="sm:w-32!" />
      <ActionFilter value={filters.action} onChange={(action) => onChange({ action })} />
      <Select
        aria-label="Time"
        className="sm:w-auto!"
        value={isPreset ? since : 'between'}
        onChange={({ target: { value } }) =>
          onChange(
            value === 'between'
              ? { since: new Date(Date.now() - 86_400_000).toISOString().slice(0, 16).concat('Z') }
              : { since: value, until: undefined },
          )
        }
      >
        {TIMES.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
        <option value="between">Between…</option>
      </Select>
      {!isPreset && (
        <>
          <NameFilter
            label="Since (UTC), or 2h"
            value={filters.since}
            onChange={(value) => onChange({ since: value })}
            width="sm:w-52!"
          />
          <NameFilter
            label="Until (UTC)"
            value={until}
            onChange={(value) => onChange({ until: value })}
            width="sm:w-52!"
          />
        </>
      )}
    </div>
  )
}

const SUBJECTS = Object.entries(
  Object.groupBy(Object.keys(ACTION_WORDS) as Action[], (action) => action.split('.')[0] ?? ''),
)

function ActionFilter(props: {
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}) {
  return (
    <Select
      aria-label="What happened"
      className="sm:w-44!"
      value={props.value ?? ''}
      onChange={({ target }) => props.onChange(target.value || undefined)}
    >
      <option value="">Anything</option>
      {props.value !== undefined && !(props.value in ACTION_WORDS) && <option>{props.value}</option>}
      {SUBJECTS.map(([subject, actions]) => (
        <optgroup key={subject} label={subject.replaceAll('_', ' ')}>
          {actions?.map((action) => (
            <option key={action} value={action}>
              {ACTION_WORDS[action]}
            </option>
          ))}
        </optgroup>
      ))}
    </Select>
  )
}
