import type { KeyboardEvent } from 'react'
import { useMe } from '../../api/me.ts'
import { useList } from '../../api/queries.ts'
import { TextField } from '../../ui/fields.tsx'
import { LifetimeField } from '../../ui/lifetimes.tsx'
import { ScopesField } from '../../ui/scopes-field.tsx'
import type { AgentForm } from './changes.ts'

interface Props {
  readonly form: AgentForm
  readonly onChange: (form: AgentForm) => void
  readonly isNew: boolean
}

/** What can be said of an agent, when it is created and later. */
export function AgentFields({ form, onChange, isNew }: Props) {
  const backends = useBackendNames()
  const set = (field: keyof AgentForm) => (value: string) => onChange({ ...form, [field]: value })
  return (
    <>
      {isNew && (
        <TextField
          label="Name"
          hint="Letters, digits, dots, dashes and underscores, such as ci-build. It never changes."
          required
          maxLength={128}
          data-first
          value={form.name}
          onChange={({ target }) => set('name')(target.value)}
        />
      )}
      <ScopesField
        label="Scopes"
        hint={`One in a line, such as orders:read.${backends === '' ? '' : ` Backends: ${backends}.`}`}
        isFirst={!isNew}
        value={form.scopes}
        onChange={set('scopes')}
      />
      <LifetimeField
        label={isNew ? 'How long it lives' : 'How long it lives from now'}
        value={form.lifetime}
        onChange={set('lifetime')}
        none={isNew ? 'without end' : 'as it is'}
        {...(isNew ? {} : { never: 'without end' })}
      />
      <TextField
        label="Owner"
        hint={`Who answers for it, such as a team. Empty: ${isNew ? 'you' : 'who created or approved it'}.`}
        maxLength={1_024}
        value={form.owner}
        onChange={({ target }) => set('owner')(target.value)}
      />
      <TextField
        label="Description"
        hint="What it is for."
        maxLength={1_024}
        value={form.description}
        onChange={({ target }) => set('description')(target.value)}
      />
      <TextField
        label="Audiences"
        hint="Others that it may request tokens for, separated by spaces, such as sts.amazonaws.com."
        value={form.audiences}
        onChange={({ target }) => set('audiences')(target.value)}
      />
    </>
  )
}

/** The first names of backends, for those who may see them. */
function useBackendNames(): string {
  const mayList = useMe()?.operations.includes('listBackends') === true
  const names = (useList('GET /v1/admin/backends', { limit: 1_000 }, { enabled: mayList }).data ?? []).map(
    ({ name }) => name,
  )
  return [...names.slice(0, 8), ...(names.length > 8 ? ['…'] : [])].join(', ')
}

/** In a form, Escape first leaves the field, so that one key does not lose what was typed. */
export function leaveField(event: KeyboardEvent): void {
  if (event.key !== 'Escape' || !(event.target instanceof HTMLElement)) return
  event.preventDefault()
  event.target.blur()
}
