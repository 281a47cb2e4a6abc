import type { Backend } from '../../../../src/client/wire.ts'
import { linesOf } from '../../ui/fields.tsx'

/** What every kind has beside its configuration, as it stands in the form. */
export interface RuleValues {
  readonly description: string
  readonly default_ttl: string
  readonly max_ttl: string
  readonly allowed_scopes: string
  readonly rate: string
  readonly max_active: string
  readonly rotate_root_after: string
}

export const NO_RULES: RuleValues = {
  description: '',
  default_ttl: '',
  max_ttl: '',
  allowed_scopes: '',
  rate: '',
  max_active: '',
  rotate_root_after: '',
}

export function showRules(backend: Backend): RuleValues {
  return {
    description: backend.description ?? '',
    default_ttl: backend.default_ttl,
    max_ttl: backend.max_ttl,
    allowed_scopes: (backend.allowed_scopes ?? []).join('\n'),
    rate: backend.rate ?? '',
    max_active: backend.max_active === undefined ? '' : String(backend.max_active),
    rotate_root_after: backend.rotate_root_after ?? '',
  }
}

/** In the form of the interface. */
export interface Rules {
  description?: string
  default_ttl?: string
  max_ttl?: string
  allowed_scopes?: string[] | null
  rate?: string | null
  max_active?: number | null
  rotate_root_after?: string | null
}

/** Only what differs from `before`. What was emptied goes back to no limit; lifetimes always have one. */
export function readRules(values: RuleValues, before: RuleValues = NO_RULES): Rules {
  const rules: Rules = {}
  const changed = (name: keyof RuleValues) => values[name].trim() !== before[name].trim()
  const textOf = (name: keyof RuleValues) => values[name].trim()
  if (changed('description')) rules.description = textOf('description')
  if (changed('default_ttl') && textOf('default_ttl') !== '') rules.default_ttl = textOf('default_ttl')
  if (changed('max_ttl') && textOf('max_ttl') !== '') rules.max_ttl = textOf('max_ttl')
  if (changed('rate')) rules.rate = textOf('rate') || null
  if (changed('rotate_root_after')) rules.rotate_root_after = textOf('rotate_root_after') || null
  if (changed('max_active'))
    rules.max_active = textOf('max_active') === '' ? null : Number(textOf('max_active'))
  if (changed('allowed_scopes')) {
    const scopes = linesOf(values.allowed_scopes)
    rules.allowed_scopes = scopes.length === 0 ? null : scopes
  }
  return rules
}

export const ruleFaults = ({ max_active }: RuleValues): Readonly<Record<string, string>> =>
  /^\s*(?:[1-9]\d{0,9})?\s*$/.test(max_active) ? {} : { max_active: 'Write a whole number above 0.' }
