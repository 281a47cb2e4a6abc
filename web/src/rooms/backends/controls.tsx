import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { CheckField, Field, Input, Select, TextArea } from '../../ui/fields.tsx'
import { Prose } from '../../ui/prose.tsx'
import {
  type Control,
  emptyOf,
  type Faults,
  type FormField,
  type FormValue,
  type FormValues,
} from './form.ts'
import { LongInput, SecretInput } from './secret-input.tsx'

interface FieldsProps {
  readonly fields: readonly FormField[]
  readonly values: FormValues
  readonly faults: Faults
  readonly onChange: (values: FormValues) => void
  /** Secrets that are stored: empty means that they stay. */
  readonly kept?: readonly string[]
  /** The path of the object that the fields are of: `policies.0.` */
  readonly at?: string
}

export function FormFields({ fields, values, faults, onChange, kept = [], at = '' }: FieldsProps) {
  return (
    <div className="grid gap-4">
      {fields.map((field) => (
        <OneField
          key={field.name}
          field={field}
          path={`${at}${field.name}`}
          value={values[field.name] ?? emptyOf(field.control)}
          faults={faults}
          isKept={kept.includes(field.name)}
          onChange={(value) => onChange({ ...values, [field.name]: value })}
        />
      ))}
    </div>
  )
}

interface OneProps {
  readonly field: FormField
  readonly path: string
  readonly value: FormValue
  readonly faults: Faults
  readonly isKept: boolean
  readonly onChange: (value: FormValue) => void
}

function OneField(props: OneProps) {
  const { field, path, value, faults, isKept, onChange } = props
  const { control } = field
  const hint = <Prose text={hintOf(field, isKept)} />
  const label = field.isNeeded || control.type === 'switch' ? field.name : `${field.name} (optional)`
  if (control.type === 'switch')
    return (
      <CheckField
        label={label}
        hint={hint}
        checked={value === true}
        onChange={({ target }) => onChange(target.checked)}
      />
    )
  if (control.type === 'group' || control.type === 'list' || control.type === 'set')
    return (
      <Several
        legend={label}
        hint={hint}
        control={control}
        path={path}
        value={value}
        faults={faults}
        onChange={onChange}
      />
    )
  return (
    <Field label={label} hint={hint} error={faults[path]}>
      {(given) => (
        <Single
          control={control}
          given={{ ...given, 'aria-invalid': faults[path] === undefined ? undefined : true }}
          name={field.name}
          value={String(value)}
          placeholder={isKept ? 'stored; empty: it stays' : field.example}
          isOptional={!field.isNeeded && field.default === undefined}
          onChange={onChange}
        />
      )}
    </Field>
  )
}

function hintOf(field: FormField, isKept: boolean): string {
  const { control } = field
  return [
    field.description,
    control.type === 'lines' && 'One in a line.',
    control.type === 'json' && 'As JSON.',
    field.isGuarded && 'Values that reach further need admin:*.',
    isKept && field.isNeeded === false && 'Stored secrets cannot be taken away, only replaced.',
  ]
    .filter(Boolean)
    .join(' ')
}

interface SingleProps {
  readonly control: Exclude<Control, { type: 'switch' | 'group' | 'list' | 'set' }>
  readonly given: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': true | undefined
  }
  readonly name: string
  readonly value: string
  readonly placeholder: string | undefined
  readonly isOptional: boolean
  readonly onChange: (value: string) => void
}

function Single({ control, given, name, value, placeholder, isOptional, onChange }: SingleProps) {
  const props = { ...given, value, placeholder }
  switch (control.type) {
    case 'choice':
      return (
        <Select {...given} value={value} onChange={({ target }) => onChange(target.value)}>
          {(isOptional || value === '') && (
            <option value="">{isOptional ? 'as the server decides' : 'choose'}</option>
          )}
          {control.values.map((one) => (
            <option key={String(one)}>{String(one)}</option>
          ))}
        </Select>
      )
    case 'lines':
    case 'json':
      return (
        <TextArea
          {...props}
          rows={Math.min(10, Math.max(3, value.split('\n').length))}
          className="font-mono text-xs!"
          onChange={({ target }) => onChange(target.value)}
        />
      )
    case 'number':
      return (
        <Input
          {...props}
          inputMode={control.isWhole ? 'numeric' : 'decimal'}
          className="max-w-40"
          onChange={({ target }) => onChange(target.value)}
        />
      )
    case 'text': {
      const more = { ...props, name, isSecret: control.isSecret, onChange }
      if (control.isLong) return <LongInput {...more} />
      if (control.isSecret) return <SecretInput {...more} />
      return <Input {...props} onChange={({ target }) => onChange(target.value)} />
    }
  }
}

interface SeveralProps {
  readonly legend: string
  readonly hint: ReactNode
  readonly control: Extract<Control, { type: 'group' | 'list' | 'set' }>
  readonly path: string
  readonly value: FormValue
  readonly faults: Faults
  readonly onChange: (value: FormValue) => void
}

function Several({ legend, hint, control, path, value, faults, onChange }: SeveralProps) {
  return (
    <fieldset className="grid gap-2">
      <legend className="text-sm font-medium">{legend}</legend>
      <p className="text-xs text-muted empty:hidden">{hint}</p>
      {faults[path] !== undefined && <p className="text-xs text-bad">{faults[path]}</p>}
      {control.type === 'group' && (
        <div className="border-l-2 border-line pl-3">
          <FormFields
            fields={control.fields}
            values={value as FormValues}
            faults={faults}
            at={`${path}.`}
            onChange={onChange}
          />
        </div>
      )}
      {control.type === 'set' && (
        <Boxes values={control.values} chosen={value as readonly string[]} onChange={onChange} />
      )}
      {control.type === 'list' && (
        <Items
          item={control.item}
          path={path}
          value={value as readonly FormValue[]}
          faults={faults}
          onChange={onChange}
        />
      )}
    </fieldset>
  )
}

interface BoxesProps {
  readonly values: readonly string[]
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
}

function Boxes({ values, chosen, onChange }: BoxesProps) {
  return (
    <div className="grid gap-1">
      {values.map((one) => (
        <CheckField
          key={one}
          label={one}
          checked={chosen.includes(one)}
          onChange={({ target }) =>
            onChange(target.checked ? [...chosen, one] : chosen.filter((other) => other !== one))
          }
        />
      ))}
    </div>
  )
}

interface ItemsProps {
  readonly item: Control
  readonly path: string
  readonly value: readonly FormValue[]
  readonly faults: Faults
  readonly onChange: (value: readonly FormValue[]) => void
}

/** A list of what has more than one line: items are added and taken off. */
function Items({ item, path, value, faults, onChange }: ItemsProps) {
  const fieldOf = (n: number): FormField => ({
    name: String(n + 1),
    description: '',
    control: item,
    isNeeded: true,
    isFirst: true,
    default: undefined,
    mayBeEmpty: false,
    example: undefined,
    isGuarded: false,
    isUpstream: false,
  })
  return (
    <div className="grid gap-3">
      {value.map((one, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an item is its place in the list
        <div key={n} className="grid gap-1">
          <OneField
            field={fieldOf(n)}
            path={`${path}.${n}`}
            value={one}
            faults={faults}
            isKept={false}
            onChange={(changed) => onChange(value.map((old, at) => (at === n ? changed : old)))}
          />
          <div>
            <Button
              look="quiet"
              aria-label={`Remove item ${n + 1}`}
              onClick={() => onChange(value.filter((_, at) => at !== n))}
            >
              Remove
            </Button>
          </div>
        </div>
      ))}
      <div>
        <Button onClick={() => onChange([...value, emptyOf(item)])}>
          {value.length === 0 ? 'Add one' : 'Add another'}
        </Button>
      </div>
    </div>
  )
}
