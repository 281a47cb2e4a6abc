import { ScopesField } from '../../ui/scopes-field.tsx'

interface Props {
  readonly scopes: string
  readonly backendScopes: string
  readonly onChange: (changes: { scopes?: string; backendScopes?: string }) => void
}

/** What a person may administer, and what they may give to agents. */
export function PersonScopes({ scopes, backendScopes, onChange }: Props) {
  return (
    <div className="grid gap-4 sm:grid-cols-2">
      <ScopesField
        label="Administers"
        hint="Admin scopes, one in a line: admin:* is everything, admin:enrollments:* the inbox, admin:audit:read the activity."
        value={scopes}
        onChange={(text) => onChange({ scopes: text })}
      />
      <ScopesField
        label="May grant agents"
        hint="Scopes of backends, one in a line: * is every backend."
        value={backendScopes}
        onChange={(text) => onChange({ backendScopes: text })}
      />
    </div>
  )
}
