import { isObject, type JsonObject } from '../../domain/formats/json.ts'

/** One field of a kind's configuration, from its JSON Schema (`GET /v1/admin/kinds`). */
export interface KindField {
  readonly name: string
  readonly description: string
  readonly type: FieldType
  readonly secret: boolean
  /** Required, and without a default. */
  readonly needed: boolean
  /** Always present, if only by its default. */
  readonly always: boolean
  readonly default: unknown
  readonly choices: readonly string[] | undefined
  /** Usually several lines, so it may come from a file. */
  readonly long: boolean
}

export type FieldType = 'text' | 'integer' | 'number' | 'boolean' | 'list' | 'text or list' | 'json'

const SECRET_MARK = 'x-secret'
const LONG_TEXT = 1025

/** The fields in the order of the schema. */
export function fieldsOf(schema: Readonly<Record<string, unknown>>): KindField[] {
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(isObject(schema['properties']) ? schema['properties'] : {}).map(([name, value]) => {
    const field: JsonObject = isObject(value) ? value : {}
    const secret = field[SECRET_MARK] === true
    const isRequired = required.includes(name)
    return {
      name,
      description: typeof field.description === 'string' ? field.description : '',
      // A secret comes from a file, so it is always text.
      type: secret ? 'text' : typeOf(field),
      secret,
      needed: isRequired && field.default === undefined,
      always: isRequired,
      default: field.default,
      choices: choicesOf(field),
      long: typeof field.maxLength === 'number' && field.maxLength >= LONG_TEXT,
    }
  })
}

function typeOf(field: JsonObject): FieldType {
  if (choicesOf(field) !== undefined) return 'text'
  switch (field.type) {
    case 'string':
      return 'text'
    case 'integer':
    case 'number':
    case 'boolean':
      return field.type
    case 'array':
      return isText(field.items) ? 'list' : 'json'
    default:
      return isTextOrList(field) ? 'text or list' : 'json'
  }
}

const isText = (value: unknown) => isObject(value) && value.type === 'string'

function isTextOrList({ anyOf }: JsonObject): boolean {
  return (
    Array.isArray(anyOf) &&
    anyOf.length === 2 &&
    anyOf.some(isText) &&
    anyOf.some((one) => isObject(one) && one.type === 'array' && isText(one.items))
  )
}

function choicesOf({ anyOf, enum: values }: JsonObject): readonly string[] | undefined {
  const all: unknown[] | undefined = Array.isArray(values)
    ? values
    : Array.isArray(anyOf)
      ? anyOf.map((one) => (isObject(one) ? one.const : undefined))
      : undefined
  return all?.every((one) => typeof one === 'string') === true && all.length > 0 ? all : undefined
}
