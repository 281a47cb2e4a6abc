import { type TSchema, Type } from 'typebox'
import type { InvalidValue } from '../domain/fault.ts'
import { each, parseCommand } from './values.ts'

/** Where a setting may be given. */
export type SourceKind = 'flag' | 'environment' | 'file'

export type Meta = {
  readonly description: string
  /** In the form of the file. A setting has this or `x-default`. */
  readonly default?: string | number | boolean | readonly string[]
  /** In words, for a setting that may be absent or follows from others. */
  readonly 'x-default'?: string
  /** The flag's argument as `--help` shows it. Without it the setting has no flag. */
  readonly 'x-argument'?: string
  /** Name of the flag if it differs from the setting's name. */
  readonly 'x-flag'?: string
  readonly 'x-secret'?: true
  /** Everywhere if absent. */
  readonly 'x-sources'?: readonly SourceKind[]
  /** A reload applies it; a change of any other setting needs a restart. */
  readonly 'x-reload'?: true
  /** All nodes of one store need the same. */
  readonly 'x-shared'?: true
}

/** One setting: the schema of its form in the file, and the parser of that form. */
export interface Setting<T = unknown, U = unknown> {
  readonly schema: TSchema
  /** Throws or reports `InvalidValue`. */
  readonly parse: (wire: never, report: (fault: InvalidValue) => void) => T
  /** `ms`: the name in the code ends in `Ms`. */
  readonly unit: U
}

/** Without a default the parsed value may be undefined. */
type Parsed<M extends Meta, T> = M extends { readonly default: unknown } ? T : T | undefined

export function setting<const M extends Meta, T, U = undefined>(
  _meta: M,
  schema: TSchema,
  parse: (wire: never, report: (fault: InvalidValue) => void) => T,
  unit?: U,
): Setting<Parsed<M, T>, U> {
  return { schema: Type.Optional(schema), parse, unit: unit as U }
}

export const text = <const M extends Meta, T>(meta: M, parse: (text: string) => T) =>
  setting(meta, Type.String({ minLength: 1, ...meta }), parse)
export const duration = <const M extends Meta>(meta: M, parse: (text: string) => number) =>
  setting(meta, Type.String({ minLength: 1, ...meta }), parse, 'ms' as const)
export const flag = <const M extends Meta>(meta: M) =>
  setting(meta, Type.Boolean(meta), (value: boolean) => value)
export const count = <const M extends Meta>(meta: M) =>
  setting(meta, Type.Integer({ minimum: 1, maximum: 1_000_000, ...meta }), (value: number) => value)
export const list = <const M extends Meta, T>(meta: M, parse: (text: string) => T) =>
  setting(meta, Type.Array(Type.String({ minLength: 1 }), meta), each(parse))
export const oneOf = <const V extends readonly string[], const M extends Meta>(values: V, meta: M) =>
  setting(meta, Type.Enum([...values], meta), (value: V[number]) => value)
export const command = <const M extends Meta>(meta: M) =>
  setting(
    meta,
    Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String(), { minItems: 1 })], meta),
    (given: string | readonly string[]) => parseCommand(given),
  )
