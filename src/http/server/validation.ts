import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import fastJson from 'fast-json-stringify'
import type { FastifySchemaCompiler } from 'fastify'
import { ACCEPTS_MARK, DOCUMENTED_AS_MARK, OPTIONAL_BODY_MARK } from '../../api/shared.ts'
import { shownPath } from '../../domain/formats/schema-faults.ts'
import { invalid, type Problem } from '../../domain/problems.ts'

/** Our schema annotations; Ajv compiles no schema with another keyword that it does not know. */
const VOCABULARY = [OPTIONAL_BODY_MARK, ACCEPTS_MARK, DOCUMENTED_AS_MARK, 'x-secret']

function createAjv(coerce: false | 'array'): Ajv {
  const ajv = new Ajv({
    coerceTypes: coerce,
    removeAdditional: false,
    useDefaults: false,
    allErrors: false,
    strict: true,
    // Coercion turns `1e400` into Infinity, which strict numbers would exempt from `maximum`; JSON has no Infinity.
    strictNumbers: coerce === false,
    strictTypes: false,
    strictTuples: false,
    allowUnionTypes: true,
    // Adds the schema to each error, so that messages can name accepted values.
    verbose: true,
    logger: false,
    addUsedSchema: false,
  })
  ajvFormats.default(ajv)
  for (const keyword of VOCABULARY) ajv.addKeyword(keyword)
  return ajv
}

export const compileStrict = compilerOf(false)
export const compileCoercing = compilerOf('array')

/** Compiles each schema once in a process: tests start hundreds of servers with the same ones. */
function compilerOf(coerce: false | 'array'): (schema: object) => ValidateFunction {
  let ajv: Ajv | undefined
  const compiled = new WeakMap<object, ValidateFunction>()
  return (schema) => {
    ajv ??= createAjv(coerce)
    const validate = compiled.get(schema) ?? ajv.compile(schema)
    compiled.set(schema, validate)
    return validate
  }
}

type Serialize = (value: unknown) => string
const serializers = new WeakMap<object, Serialize>()

/** The same for replies. */
export function compileReply(schema: object): Serialize {
  const serialize = serializers.get(schema) ?? fastJson(schema as fastJson.Schema)
  serializers.set(schema, serialize)
  return serialize
}

/** With the first such reply, for the same reason as `compiledLater`. */
export function compileSerializer({ schema }: { readonly schema: object }): Serialize {
  let serialize: Serialize | undefined
  return (value) => {
    serialize ??= compileReply(schema)
    return serialize(value)
  }
}

/**
 * Coerces only query and path, which have no types; bodies and headers stay as sent. Never drops fields or fills in
 * defaults.
 */
export function createValidatorCompiler(): FastifySchemaCompiler<object> {
  return ({ schema, httpPart }) => {
    const fromUrl = httpPart === 'querystring' || httpPart === 'params'
    const compiled = compiledLater(fromUrl ? compileCoercing : compileStrict, schema)
    const validate = fromUrl ? demandDecimals(schema, compiled) : compiled
    if (httpPart !== 'body' || Reflect.get(schema, OPTIONAL_BODY_MARK) !== true) return validate
    return allowAbsent(validate)
  }
}

/** With the first request that needs it: to compile all schemas would take a third of the start. */
function compiledLater(compile: (schema: object) => ValidateFunction, schema: object): ValidateFunction {
  let validate: ValidateFunction | undefined
  const later = (data: unknown): boolean => {
    validate ??= compile(schema)
    const valid = validate(data)
    later.errors = validate.errors
    return valid
  }
  later.errors = null as ValidateFunction['errors']
  return later as ValidateFunction
}

/** A plain decimal integer. Ajv's coercion would also accept `0x10`, `1e2`, `+5`, `05` and ` 5`. */
const DECIMAL = /^(?:0|-?[1-9]\d*)$/

/** Refuses any other text for an integer in a query or path. */
function demandDecimals(schema: object, validate: ValidateFunction): ValidateFunction {
  const properties = Object.entries((Reflect.get(schema, 'properties') ?? {}) as Record<string, object>)
  const integers = properties
    .filter(([, one]) => Reflect.get(one, 'type') === 'integer')
    .map(([name]) => name)
  if (integers.length === 0) return validate
  const decimal = (data: Record<string, unknown>): boolean => {
    const bad = integers.find((name) => typeof data[name] === 'string' && !DECIMAL.test(data[name]))
    const valid = bad === undefined && validate(data)
    decimal.errors = bad === undefined ? validate.errors : [notInteger(bad)]
    return valid === true
  }
  decimal.errors = null as ValidateFunction['errors']
  return decimal as unknown as ValidateFunction
}

function notInteger(name: string): ErrorObject {
  const schemaPath = `#/properties/${name}/type`
  return {
    keyword: 'type',
    instancePath: `/${name}`,
    schemaPath,
    params: { type: 'integer' },
    message: 'must be integer',
  }
}

/** Fastify passes an absent body to the validator as null; a JSON `null` is refused earlier. */
function allowAbsent(validate: ValidateFunction): ValidateFunction {
  const relaxed = (data: unknown): boolean => {
    if (data === null) return true
    const valid = validate(data)
    relaxed.errors = validate.errors
    return valid
  }
  relaxed.errors = null as ValidateFunction['errors']
  return relaxed as ValidateFunction
}

/** Fastify's names of request parts, as messages call them. */
const PARTS: Readonly<Record<string, string>> = { querystring: 'query', params: 'path' }

/** Turns Ajv's errors into one message that names the field and contains no input of the caller. */
export function describeErrors(errors: readonly ErrorObject[], part: string): Problem {
  const error = meantError(errors)
  const where = PARTS[part] ?? part
  if (error === undefined) return invalid(`The ${where} is not valid.`)
  const field = shownPath(error).join('.')
  const subject = field === '' ? `The ${where}` : `"${field}" in the ${where}`
  return invalid(`${subject} ${describeKeyword(error)}.`)
}

/**
 * A union reports each branch first and itself last. If all branches but one want another type (`null`, say), the value was meant for
 * that one, and what it lacks there says more.
 */
function meantError(errors: readonly ErrorObject[]): ErrorObject | undefined {
  const union = errors.at(-1)
  if (union?.keyword !== 'anyOf') return union
  const branches = new Map<string, ErrorObject[]>()
  for (const error of errors.slice(0, -1)) {
    if (!error.schemaPath.startsWith(`${union.schemaPath}/`)) continue
    const branch = error.schemaPath.slice(union.schemaPath.length + 1).split('/')[0] ?? ''
    branches.set(branch, [...(branches.get(branch) ?? []), error])
  }
  const isOther = ({ keyword, instancePath }: ErrorObject) =>
    (keyword === 'type' || keyword === 'const') && instancePath === union.instancePath
  const [meant, ...more] = [...branches.values()].filter((branch) => !branch.some(isOther))
  return meant === undefined || more.length > 0 ? union : meantError(meant)
}

function describeKeyword(error: ErrorObject): string {
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `has an unknown field${knownFields(error)}`
    case 'pattern':
      return 'does not have the required form'
    case 'enum':
      return `must be one of ${JSON.stringify(error.params['allowedValues'])}`
    case 'const':
      return `must be ${JSON.stringify(error.params['allowedValue'])}`
    case 'anyOf':
    case 'oneOf':
      return `does not match any accepted form${acceptedConstants(error)}`
    case 'propertyNames':
      return 'has a field with an invalid name'
    default:
      return error.message ?? 'is not valid'
  }
}

function knownFields(error: ErrorObject): string {
  const properties: unknown = error.parentSchema?.['properties']
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return names.length === 0 ? '; it has none' : `; its fields are ${names.join(', ')}`
}

function acceptedConstants(error: ErrorObject): string {
  if (!Array.isArray(error.schema)) return ''
  const values = error.schema.map((branch: unknown) =>
    typeof branch === 'object' && branch !== null ? Reflect.get(branch, 'const') : undefined,
  )
  return values.includes(undefined) ? '' : `: ${values.map((value) => JSON.stringify(value)).join(', ')}`
}
