import type { Agent } from '../../../../src/client/wire.ts'
import { Input, Select } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { type Filters, SHOWN } from './filters.ts'

interface Props {
  readonly filters: Filters
  readonly agents: readonly Agent[]
  readonly onChange: (changes: Partial<Filters>) => void
}

export function AgentFilters({ filters, agents, onChange }: Props) {
  const policies = namesOf(
    agents.map(({ policy }) => policy),
    filters.policy,
  )
  const backends = namesOf(
    agents.flatMap(({ scopes }) => scopes.map((scope) => scope.split(':')[0] ?? '')),
    filters.backend,
  )
  return (
    <div className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap">
      <Input
        type="search"
        data-filter
        aria-label="Name or owner"
        placeholder="Name or owner"
        className="sm:w-52!"
        value={filters.name ?? ''}
        onChange={({ target }) => onChange({ name: target.value || undefined })}
      />
      <Choice
        label="Policy"
        all="Any policy"
        options={policies}
        value={filters.policy}
        onChange={(policy) => onChange({ policy })}
      />
      <Choice
        label="Backend"
        all="Any backend"
        options={backends}
        value={filters.backend}
        onChange={(backend) => onChange({ backend })}
      />
      <Select
        aria-label="Which"
        className="sm:w-auto!"
        value={filters.show ?? ''}
        onChange={({ target }) => onChange({ show: target.value || undefined })}
      >
        <option value="">All</option>
        {Object.entries(SHOWN).map(([name, { title }]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </Select>
    </div>
  )
}

/** Those that occur, without patterns, and the one that is chosen. */
function namesOf(names: readonly (string | null)[], chosen: string | undefined): readonly string[] {
  const found = new Set([...names, chosen ?? null].filter((one) => one !== null && !one.includes('*')))
  return ([...found] as string[]).sort((a, b) => a.localeCompare(b)).slice(0, 500)
}

interface ChoiceProps {
  readonly label: string
  readonly all: string
  readonly options: readonly string[]
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

function Choice({ label, all, options, value, onChange }: ChoiceProps) {
  return (
    <Select
      aria-label={label}
      className="sm:w-auto! sm:max-w-48"
      value={value ?? ''}
      onChange={({ target }) => onChange(target.value || undefined)}
    >
      <option value="">{all}</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {visible(one)}
        </option>
      ))}
    </Select>
  )
}
