import Type, { type TObject, type TSchema } from 'typebox'
import { GUARDED_MARK, PROTECTION_MARK, SECRET_MARK, UPSTREAM_MARK } from '../backends/kind.ts'
import { isObject, type JsonObject } from '../domain/formats/json.ts'
import { isLinearPattern } from '../domain/formats/pattern.ts'

/** A fault of a schema that a plugin sent; the message is the end of a sentence that begins with "The plugin". */
export class SchemaFault extends Error {}

type Options = Record<string, unknown>

const MAX_FIELDS = 64
const MAX_DEPTH = 4
const MAX_TEXT = 2_000
const MAX_CHOICES = 64
const FIELD = /^[a-z][a-z0-9_]{0,63}$/

const ABOUT = ['type', 'title', 'description', 'default', 'examples']
const MARKS = [SECRET_MARK, UPSTREAM_MARK, PROTECTION_MARK, GUARDED_MARK]
/** By type, what may be said beside that. */
const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  object: ['properties', 'required', 'additionalProperties'],
  string: ['minLength', 'maxLength', 'pattern', 'const', 'enum'],
  integer: ['minimum', 'maximum', 'const', 'enum'],
  number: ['minimum', 'maximum', 'const', 'enum'],
  boolean: ['const'],
  array: ['items', 'minItems', 'maxItems'],
  union: ['anyOf', 'enum', 'const'],
}
const NUMBERS = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum']

/** The schema of a configuration, or of options: what TypeBox checks, in its own form. Throws `SchemaFault`. */
export function readSchema(value: unknown, what: string): TObject {
  const schema = objectOf(value, what)
  if (schema['type'] !== 'object') throw new SchemaFault(`states a ${what} schema that is no object`)
  return read(schema, what, 0) as TObject
}

function objectOf(value: unknown, at: string): JsonObject {
  if (isObject(value)) return value
  throw new SchemaFault(`states a schema for ${at} that is no object`)
}

function read(schema: JsonObject, at: string, depth: number): TSchema {
  if (depth > MAX_DEPTH) throw new SchemaFault(`states a schema that is too deep at ${at}`)
  const type = typeof schema['type'] === 'string' ? schema['type'] : 'union'
  const known = KEYWORDS[type]
  if (known === undefined) throw new SchemaFault(`states an unknown type for ${at}`)
  const { options, marks } = optionsOf(schema, known, at)
  requireMarkable(marks, type, at, depth)
  const choices = choicesOf(schema, at)
  if (choices !== undefined) return one(choices, { ...options, ...marks })
  const all = { ...options, ...marks }
  switch (type) {
    case 'object':
      return readObject(schema, all, at, depth)
    case 'string':
      return Type.String(all)
    case 'integer':
      return Type.Integer(all)
    case 'number':
      return Type.Number(all)
    case 'boolean':
      return Type.Boolean(all)
    case 'array':
      return Type.Array(read(objectOf(schema['items'], at), at, depth + 1), all)
    default:
      return readUnion(schema, all, at, depth)
  }
}

/** What is sealed and what is compared are the fields of the configuration itself. */
function requireMarkable(marks: Options, type: string, at: string, depth: number): void {
  const names = Object.keys(marks)
  if (names.length > 0 && depth !== 1)
    throw new SchemaFault(`marks ${at}, which is no field of the configuration`)
  if (SECRET_MARK in marks && type !== 'string')
    throw new SchemaFault(`marks ${at} as secret, which is no text`)
}

/** Everything but what holds further schemas. */
function optionsOf(
  schema: JsonObject,
  known: readonly string[],
  at: string,
): { options: Options; marks: Options } {
  const options: Record<string, unknown> = {}
  const marks: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(schema)) {
    if (MARKS.includes(name)) marks[name] = readMark(name, value, at)
    else if (!ABOUT.includes(name) && !known.includes(name)) {
      throw new SchemaFault(`uses a keyword for ${at} that Mayfly does not know`)
    } else if (isOption(name, value, at)) options[name] = value
  }
  return { options, marks }
}

function isOption(name: string, value: unknown, at: string): boolean {
  const fail = () => new SchemaFault(`states a wrong "${name}" for ${at}`)
  if (NUMBERS.includes(name) && !Number.isFinite(value)) throw fail()
  if ((name === 'title' || name === 'description') && !isText(value)) throw fail()
  if (name === 'pattern' && !(typeof value === 'string' && isLinearPattern(value))) {
    throw new SchemaFault(
      `states a pattern for ${at} that is too complex: it must begin with ^, and have at most one repetition, of no group, little behind it, and few alternatives`,
    )
  }
  return ['title', 'description', 'default', 'examples', 'pattern', ...NUMBERS].includes(name)
}

const isText = (value: unknown) =>
  typeof value === 'string' && value.length <= MAX_TEXT && !/\p{Cc}|\p{Cf}/u.test(value)

function readMark(name: string, value: unknown, at: string): unknown {
  if (name !== GUARDED_MARK) {
    if (value !== true) throw new SchemaFault(`states a wrong "${name}" for ${at}`)
    return true
  }
  const { safe } = objectOf(value, at)
  const isSafe = Array.isArray(safe) && safe.every((one) => ['string', 'boolean'].includes(typeof one))
  if (!isSafe) throw new SchemaFault(`states a wrong "${name}" for ${at}`)
  return { safe }
}

type Choice = string | number | boolean

/** Of `enum`, `const` and unions of these, which Mayfly's forms show as a choice. */
function choicesOf(schema: JsonObject, at: string): readonly Choice[] | undefined {
  const { enum: list, const: only, anyOf } = schema
  const branches = Array.isArray(anyOf) ? anyOf.map((branch) => objectOf(branch, at)['const']) : undefined
  const found = Array.isArray(list) ? list : only === undefined ? branches : [only]
  if (found === undefined || (list === undefined && only === undefined && found.includes(undefined))) return
  const isChoice = (one: unknown) => ['string', 'number', 'boolean'].includes(typeof one)
  if (found.length === 0 || found.length > MAX_CHOICES || !found.every(isChoice)) {
    throw new SchemaFault(`states wrong choices for ${at}`)
  }
  return found as Choice[]
}

function one(choices: readonly Choice[], options: Options): TSchema {
  const [only, ...more] = choices.map((choice) => Type.Literal(choice))
  if (only !== undefined && more.length === 0) return Type.Literal(choices[0] as Choice, options)
  return Type.Union([only as TSchema, ...more], options)
}

function readObject(schema: JsonObject, options: Options, at: string, depth: number): TObject {
  if (schema['additionalProperties'] !== false) {
    throw new SchemaFault(`does not state "additionalProperties": false for ${at}`)
  }
  const fields = Object.entries(objectOf(schema['properties'] ?? {}, at))
  const required = schema['required'] ?? []
  if (fields.length > MAX_FIELDS) throw new SchemaFault(`states too many fields for ${at}`)
  if (!Array.isArray(required) || !required.every((name) => fields.some(([known]) => known === name))) {
    throw new SchemaFault(`requires fields for ${at} that it does not have`)
  }
  const properties = fields.map(([name, field]) => {
    if (!FIELD.test(name)) throw new SchemaFault(`states a field for ${at} whose name is not one`)
    const type = read(objectOf(field, name), name, depth + 1)
    return [name, required.includes(name) ? type : Type.Optional(type)] as const
  })
  return Type.Object(Object.fromEntries(properties), { ...options, additionalProperties: false })
}

function readUnion(schema: JsonObject, options: Options, at: string, depth: number): TSchema {
  const branches = schema['anyOf']
  if (!Array.isArray(branches) || branches.length === 0 || branches.length > MAX_CHOICES) {
    throw new SchemaFault(`states no type for ${at}`)
  }
  return Type.Union(
    branches.map((branch) => read(objectOf(branch, at), at, depth + 1)),
    options,
  )
}
