import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import type { FastifySchemaCompiler } from 'fastify'
import { invalid, type Problem } from '../../domain/problems.ts'

/** Marks a body schema whose body may be absent altogether; `null` sent as JSON is still refused. */
export const OPTIONAL_BODY_MARK = 'x-optional-body'

/** Adds the mark: `schema: { body: optionalBody(Type.Object({ … })) }`. Absent: `request.body` is undefined. */
export function optionalBody<T extends object>(schema: T): T {
  // Descriptors, because TypeBox keeps what it knows of a schema in properties that are not enumerable.
  return Object.create(Object.prototype, {
    ...Object.getOwnPropertyDescriptors(schema),
    [OPTIONAL_BODY_MARK]: { value: true, enumerable: true },
  })
}

/** Our annotations in schemas; any other keyword that Ajv does not know stops the boot. */
const VOCABULARY = [OPTIONAL_BODY_MARK, 'x-secret']

function createAjv(coerce: false | 'array'): Ajv {
  const ajv = new Ajv({
    coerceTypes: coerce,
    removeAdditional: false,
    useDefaults: false,
    allErrors: false,
    strict: true,
    // `1e400` is coerced to Infinity, which strict numbers would exempt from `maximum`; JSON cannot say it.
    strictNumbers: coerce === false,
    strictTypes: false,
    strictTuples: false,
    allowUnionTypes: true,
    // Gives the schema beside each error, so that messages can name what is accepted.
    verbose: true,
    logger: false,
    addUsedSchema: false,
  })
  ajvFormats.default(ajv)
  for (const keyword of VOCABULARY) ajv.addKeyword(keyword)
  return ajv
}

/**
 * Bodies and headers are taken as they are; only query and path, which know no types, are coerced. Nothing is
 * dropped or filled in anywhere.
 */
export function createValidatorCompiler(): FastifySchemaCompiler<object> {
  const strict = createAjv(false)
  const coercing = createAjv('array')
  return ({ schema, httpPart }) => {
    const fromUrl = httpPart === 'querystring' || httpPart === 'params'
    const compiled = (fromUrl ? coercing : strict).compile(schema)
    const validate = fromUrl ? demandDecimals(schema, compiled) : compiled
    if (httpPart !== 'body' || Reflect.get(schema, OPTIONAL_BODY_MARK) !== true) return validate
    return allowAbsent(validate)
  }
}

/** A whole number as people write it. Ajv's coercion takes `0x10`, `1e2`, `+5`, `05` and ` 5` for one as well. */
const DECIMAL = /^(?:0|-?[1-9]\d*)$/

/** Refuses any other text where the schema of a query or a path has an integer. */
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

/** Fastify shows an absent body to the validator as null; `null` as a body never gets this far. */
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

/** `body`, `querystring`, `params` or `headers`, as Fastify names them, in the reader's words. */
const PARTS: Readonly<Record<string, string>> = { querystring: 'query', params: 'path' }

/** One message for what Ajv found: it names the field as the schema does, and holds nothing that was sent. */
export function describeErrors(errors: readonly ErrorObject[], part: string): Problem {
  // A union reports each branch first and itself last.
  const error = errors.at(-1)
  const where = PARTS[part] ?? part
  if (error === undefined) return invalid(`The ${where} is not valid.`)
  const field = fieldPath(error)
  const subject = field === '' ? `The ${where}` : `"${field}" in the ${where}`
  return invalid(`${subject} ${describeKeyword(error)}.`)
}

function describeKeyword(error: ErrorObject): string {
  switch (error.keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `has an unknown field${knownFields(error)}`
    case 'pattern':
      return 'is not of the accepted form'
    case 'enum':
      return `must be one of ${JSON.stringify(error.params['allowedValues'])}`
    case 'const':
      return `must be ${JSON.stringify(error.params['allowedValue'])}`
    case 'anyOf':
    case 'oneOf':
      return `matches none of the accepted forms${acceptedConstants(error)}`
    case 'propertyNames':
      return 'has a field whose name is not accepted'
    default:
      return error.message ?? 'is not valid'
  }
}

function knownFields(error: ErrorObject): string {
  const properties: unknown = error.parentSchema?.['properties']
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return names.length === 0 ? '; it takes none' : `; it takes ${names.join(', ')}`
}

function acceptedConstants(error: ErrorObject): string {
  if (!Array.isArray(error.schema)) return ''
  const values = error.schema.map((branch: unknown) =>
    typeof branch === 'object' && branch !== null ? Reflect.get(branch, 'const') : undefined,
  )
  return values.includes(undefined) ? '' : `: ${values.map((value) => JSON.stringify(value)).join(', ')}`
}

/** `/scopes/0` → `scopes.0`. Names that the schema does not spell out came from the caller: they are `*`. */
function fieldPath(error: ErrorObject): string {
  const segments = error.instancePath.split('/').slice(1)
  return segments
    .map((segment) =>
      /^\d{1,5}$/.test(segment) || error.schemaPath.includes(`/properties/${segment}/`) ? segment : '*',
    )
    .join('.')
}
