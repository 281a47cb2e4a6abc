import Type, { type TProperties, type TSchema, type TUnsafe } from 'typebox'
import { misconfigured } from '../domain/backend-error.ts'
import { GUARDED_MARK, guardedField, protectionField, secretField, upstreamField } from './kind.ts'

/** What configurations and options of requests are made of, and the fields that many kinds have. `rules`: of JSON Schema. */

interface TextRules {
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly default?: string
}

/** A configuration. `example`: of the fields that an administrator must give. */
export function configOf<F extends TProperties>(example: object, fields: F) {
  return Type.Object(fields, { additionalProperties: false, examples: [example] })
}

/** An object without other fields. */
export const closed = <F extends TProperties>(fields: F) =>
  Type.Object(fields, { additionalProperties: false })

export const text = (description: string, rules: TextRules = {}) => Type.String({ ...rules, description })
/** With the marks of `kind.ts`. */
export const secret = (description: string, rules: TextRules = {}) =>
  Type.String(secretField({ ...rules, description }))
export const upstream = (description: string, rules: TextRules = {}) =>
  Type.String(upstreamField({ ...rules, description }))
export const protection = (description: string, rules: TextRules = {}) =>
  Type.String(protectionField({ ...rules, description }))

/** As `guardedField`, of a field that was just made. */
export function guarded<S extends TSchema>(field: S, ...safe: readonly (string | boolean)[]): S {
  return Object.assign(field, { [GUARDED_MARK]: { safe } })
}

/** One of these texts; the first one is the default. */
export function choice<const V extends string>(values: readonly V[], description: string): TUnsafe<V> {
  const literals = values.map((value) => Type.Literal(value))
  return Type.Union(literals, { default: values[0], description }) as unknown as TUnsafe<V>
}

/** A list with at least one item. */
export function list<S extends TSchema>(
  item: S,
  most: number,
  description: string,
  rules: { readonly default?: readonly unknown[] } = {},
) {
  return Type.Array(item, { minItems: 1, maxItems: most, ...rules, description })
}

/** PEM to trust instead of the system's authorities. */
export function ca(description: string) {
  return Type.Optional(protection(description, { maxLength: 32_768 }))
}

/** Permits loopback addresses. */
export function local(
  description = 'The server is on this machine or in its own network: permits loopback addresses and http.',
) {
  return Type.Boolean(guardedField(protectionField({ default: false, description }), false))
}

/**
 * For upstreams that can be reached without TLS (ADR 0041). The default is stored, so that a configuration that was stored before
 * this field existed can be told by its absence.
 */
export function localUser() {
  const description =
    'Account of this machine that runs the upstream, if that listens on a loopback address without TLS and is neither root nor an account of its package.'
  const rules = { default: '', pattern: '^([A-Za-z0-9_.][A-Za-z0-9_.-]{0,31})?$' }
  return Type.Optional(guarded(protection(description, rules), ''))
}

/** Throws `BackendError` (`misconfigured`) for an address that would show secrets on the way to another machine. */
export function requireHttps(field: string, url: string, local: boolean): void {
  requireConfig(
    local || url.startsWith('https:'),
    `"${field}" must begin with https:// unless "local" is true.`,
  )
}

/** For checks that no schema expresses. Throws `BackendError` (`misconfigured`); the message names the field. */
export function requireConfig(condition: boolean, message: string): void {
  if (!condition) throw misconfigured(message)
}
