import { isDeepStrictEqual } from 'node:util'
import type { TObject, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { isObject } from '../domain/formats/json.ts'
import { faultsOf } from '../domain/formats/schema-faults.ts'
import { GUARDED_MARK, PROTECTION_MARK, SECRET_MARK, UPSTREAM_MARK } from './kind.ts'

/** Replaces a secret wherever a configuration is shown; sent back, it means "unchanged". */
const HIDDEN = '[redacted]'
const LONGEST_NAME = 64

type Fields = Readonly<Record<string, unknown>>

/** The fields that are sealed, in the schema's order. */
export function secretFields(schema: TObject): string[] {
  return markedFields(schema, SECRET_MARK)
}

function markedFields(schema: TObject, mark: string): string[] {
  return Object.entries(schema.properties)
    .filter(([, field]) => mark in field)
    .map(([name]) => name)
}

/**
 * A copy to show, with `[redacted]` for each secret that is present. Leaves out fields that the schema does not know: they were
 * stored under another schema, which may have marked them as secret.
 */
export function redactConfig(schema: TObject, config: Fields): Record<string, unknown> {
  const known = Object.keys(schema.properties).filter((name) => Object.hasOwn(config, name))
  const shown = Object.fromEntries(known.map((name) => [name, config[name]]))
  for (const field of secretFields(schema)) if (shown[field] !== undefined) shown[field] = HIDDEN
  return shown
}

/** The new configuration, with the old value of each secret that was left out or sent as `[redacted]`. */
export function keepSecrets(schema: TObject, before: Fields, after: Fields): Record<string, unknown> {
  const kept = { ...after }
  for (const field of secretFields(schema)) {
    if (isEntered(kept[field])) continue
    if (before[field] === undefined) delete kept[field]
    else kept[field] = before[field]
  }
  return kept
}

/**
 * A secret that `keepSecrets` kept, and the changed field by which it would be sent elsewhere or with less protection.
 * `given` is as it was sent; `before` and `after` have their defaults.
 */
export function findExposed(
  schema: TObject,
  before: Fields,
  given: Fields,
  after: Fields,
): { readonly secret: string; readonly by: string } | undefined {
  const secret = secretFields(schema).find((field) => before[field] !== undefined && !isEntered(given[field]))
  const by = findMove(schema, before, after) ?? firstChanged(schema, PROTECTION_MARK, before, after)
  return secret === undefined || by === undefined ? undefined : { secret, by }
}

/** Whether `after` would send secrets elsewhere, or with less protection. Both have their defaults. */
export function isRedirected(schema: TObject, before: Fields, after: Fields): boolean {
  return [UPSTREAM_MARK, PROTECTION_MARK, GUARDED_MARK].some(
    (mark) => firstChanged(schema, mark, before, after) !== undefined,
  )
}

/** The first changed field that names another upstream, if any. Both have their defaults. */
export function findMove(schema: TObject, before: Fields, after: Fields): string | undefined {
  return firstChanged(schema, UPSTREAM_MARK, before, after)
}

/**
 * Whether this configuration is another one. A secret that was entered counts as another, even if it is the same:
 * otherwise the answer would tell whether a guess is right.
 */
export function isAnother(schema: TObject, before: Fields, given: Fields, after: Fields): boolean {
  return secretFields(schema).some((field) => isEntered(given[field])) || !isDeepStrictEqual(before, after)
}

/** The first field with a value that only the local host and holders of `admin:*` may store. */
export function findGuarded(schema: TObject, config: Fields): string | undefined {
  return markedFields(schema, GUARDED_MARK).find((name) => {
    const { safe = [] } =
      (schema.properties[name] as Record<string, { safe?: readonly unknown[] }>)[GUARDED_MARK] ?? {}
    return config[name] !== undefined && !safe.includes(config[name])
  })
}

function isEntered(secret: unknown): boolean {
  return secret !== undefined && secret !== HIDDEN
}

function firstChanged(schema: TObject, mark: string, before: Fields, after: Fields): string | undefined {
  return markedFields(schema, mark).find(
    (name) => !isDeepStrictEqual(withDefault(schema, before, name), withDefault(schema, after, name)),
  )
}

/** A configuration that was stored before this field existed lacks its default. */
function withDefault(schema: TObject, config: Fields, name: string): unknown {
  return config[name] ?? (schema.properties[name] as { default?: unknown } | undefined)?.default
}

/** The configuration with its defaults, and its faults as paths, never values. */
export function readConfig(
  schema: TObject,
  given: unknown,
): { readonly config: Record<string, unknown>; readonly faults: string[] } {
  const config = applyDefaults(schema, given)
  return { config: config as Record<string, unknown>, faults: validateConfig(schema, config) }
}

/** A copy with the schema's defaults filled in; values that are not objects are returned as they are. */
export function applyDefaults(schema: TObject, value: unknown): unknown {
  return Value.Default(schema, structuredClone(value))
}

/** The faults of one request's options, as `validateConfig` reports them; most requests carry no options. */
export function findParamFaults(schema: TSchema, params: Fields): string[] {
  const { required, properties } = schema as Partial<TObject>
  if (Object.keys(params).length === 0 && (required ?? []).length === 0) return []
  if (properties !== undefined) return validateConfig(schema as TObject, params)
  return Value.Check(schema, params) ? [] : ['The options are not valid']
}

/**
 * The faults of a configuration after `applyDefaults`, one line each, empty when there are none. They name paths
 * (`databases/0`) of fields that the schema knows, and never the values sent. An unknown field is a fault.
 */
export function validateConfig(schema: TObject, value: unknown): string[] {
  if (!isObject(value)) {
    return ['The configuration must be an object']
  }
  const given = new Map<string, unknown>(Object.entries(value))
  const unknown = [...given.keys()].filter((name) => !Object.hasOwn(schema.properties, name))
  const required = new Set<string>(schema.required ?? [])
  return [
    ...(unknown.length === 0 ? [] : [`There is an unknown field${knownFields(schema)}`]),
    // Field by field: TypeBox collects at most eight errors at a time.
    ...Object.entries(schema.properties).flatMap(([name, field]) => {
      if (given.get(name) !== undefined) return fieldFaults(name, field, given.get(name))
      return required.has(name) ? [`${quoted([name])} is required`] : []
    }),
  ]
}

function fieldFaults(field: string, schema: TSchema, value: unknown): string[] {
  const errors = Value.Errors(schema, value)
  const faults = faultsOf(errors).flatMap(({ keyword, shown, reason, choices, fields }): string[] => {
    const at = [field, ...shown]
    if (keyword === 'required') return fields.map((name) => `${quoted([...at, name])} is required`)
    if (keyword === 'additionalProperties') return [`${quoted(at)} has an unknown field`]
    const isUnion = keyword === 'anyOf' && choices.length > 0
    const says = isUnion ? `must be one of ${choices.map((one) => JSON.stringify(one)).join(', ')}` : reason
    return [`${quoted(at)} ${says}`]
  })
  // A union must be a fault even if the errors of its branches displaced its own.
  return faults.length === 0 && errors.length > 0 ? [`${quoted([field])} is not valid`] : [...new Set(faults)]
}

function knownFields(schema: TObject): string {
  const names = Object.keys(schema.properties)
  return names.length === 0 ? '; it takes none' : `; it takes ${names.join(', ')}`
}

/** Shortened, in quotes. */
function quoted(path: readonly string[]): string {
  const whole = path.join('/')
  return JSON.stringify(whole.length > LONGEST_NAME ? `${whole.slice(0, LONGEST_NAME)}…` : whole)
}
