import { useState } from 'react'
import { Field, Input, Select } from './fields.tsx'

const PRESETS = ['15m', '1h', '8h', '24h', '7d', '30d', '90d'] as const
const SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Seconds of a duration such as `1h30m`; undefined for anything else. */
export function secondsOf(text: string): number | undefined {
  if (!/^(\d+(ms|[smhdw]))+$/.test(text)) return undefined
  return [...text.matchAll(/(\d+)(ms|[smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? 's'] ?? 0),
    0,
  )
}

interface Props {
  readonly label: string
  /** A duration; empty: the default. */
  readonly value: string
  readonly onChange: (value: string) => void
  /** What an empty value means: "as requested", "no end". */
  readonly none: string
  /** The longest that the server takes, as a duration: longer presets are not offered. */
  readonly most?: string | undefined
  /** The name of a choice without end, if there is one: its value is `never`. */
  readonly never?: string
}

/** What is chosen for no end. */
export const NEVER = 'never'

/** Preset lifetimes within the server's limits, or any other. */
export function LifetimeField({ label, value, onChange, none, most, never }: Props) {
  const limit = (most === undefined ? undefined : secondsOf(most)) ?? Number.POSITIVE_INFINITY
  const presets = PRESETS.filter((one) => (secondsOf(one) ?? 0) <= limit)
  const [isOther, setOther] = useState(
    value !== '' && value !== NEVER && !(PRESETS as readonly string[]).includes(value),
  )
  const isBad = isOther && value !== '' && secondsOf(value) === undefined
  return (
    <Field
      label={label}
      hint={most === undefined ? undefined : `At most ${most}.`}
      error={isBad ? 'Write a duration such as 45s, 10m or 1h30m.' : undefined}
    >
      {(control) => (
        <div className="flex gap-2">
          <Select
            {...control}
            value={isOther ? 'other' : value}
            onChange={({ target }) => {
              setOther(target.value === 'other')
              onChange(target.value === 'other' ? '' : target.value)
            }}
          >
            <option value="">{none}</option>
            {presets.map((one) => (
              <option key={one}>{one}</option>
            ))}
            {never !== undefined && <option value={NEVER}>{never}</option>}
            <option value="other">Other…</option>
          </Select>
          {isOther && (
            <Input
              aria-label={`${label}: a duration`}
              placeholder="1h30m"
              value={value}
              onChange={({ target }) => onChange(target.value.trim())}
            />
          )}
        </div>
      )}
    </Field>
  )
}
