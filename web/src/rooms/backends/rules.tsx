import type { Backend } from '../../../../src/client/wire.ts'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Field, TextArea, TextField } from '../../ui/fields.tsx'
import { LifetimeField } from '../../ui/lifetimes.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import type { RuleValues } from './rule-values.ts'

/** The limits of what a backend issues. */
export function BackendRules({ backend }: { readonly backend: Backend }) {
  return (
    <Facts>
      <Fact name="Lifetime">
        {backend.default_ttl} unless asked, at most {backend.max_ttl}
      </Fact>
      <Fact name="Scopes">
        <Scopes scopes={backend.allowed_scopes ?? []} none="all of its kind" />
      </Fact>
      <Fact name="Rate">{backend.rate ?? <span className="text-muted">no limit</span>}</Fact>
      <Fact name="Live at most">
        {backend.max_active?.toLocaleString('en') ?? <span className="text-muted">no limit</span>}
      </Fact>
      <Fact name="Replace its secret">
        {backend.rotate_root_after === undefined ? (
          <span className="text-muted">no reminder</span>
        ) : (
          `reminds after ${backend.rotate_root_after}`
        )}
      </Fact>
    </Facts>
  )
}

interface Props {
  readonly values: RuleValues
  readonly faults: Readonly<Record<string, string>>
  readonly onChange: (values: RuleValues) => void
}

export function RuleFields({ values, faults, onChange }: Props) {
  const set = (name: keyof RuleValues) => (value: string) => onChange({ ...values, [name]: value })
  return (
    <div className="grid gap-4">
      <LifetimeField
        label="default_ttl"
        value={values.default_ttl}
        onChange={set('default_ttl')}
        none="as the server decides"
      />
      <LifetimeField
        label="max_ttl"
        value={values.max_ttl}
        onChange={set('max_ttl')}
        none="as the server decides"
      />
      <Field
        label="allowed_scopes (optional)"
        hint="The only scopes that it issues, without its name, one in a line. Empty: all."
      >
        {(control) => (
          <TextArea
            {...control}
            rows={3}
            className="font-mono text-xs!"
            value={values.allowed_scopes}
            onChange={({ target }) => set('allowed_scopes')(target.value)}
          />
        )}
      </Field>
      <TextField
        label="rate (optional)"
        hint="Credentials per second, minute, hour or day."
        placeholder="10/hour"
        value={values.rate}
        onChange={({ target }) => set('rate')(target.value)}
      />
      <TextField
        label="max_active (optional)"
        hint="Live credentials at a time."
        inputMode="numeric"
        placeholder="100"
        value={values.max_active}
        error={faults['max_active']}
        onChange={({ target }) => set('max_active')(target.value)}
      />
      <TextField
        label="rotate_root_after (optional)"
        hint="The age of Mayfly’s own secret at which receivers of notifications are told."
        placeholder="90d"
        value={values.rotate_root_after}
        onChange={({ target }) => set('rotate_root_after')(target.value)}
      />
    </div>
  )
}
