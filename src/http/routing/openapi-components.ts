import { ACCEPTS_MARK, DOCUMENTED_AS_MARK, OPTIONAL_BODY_MARK } from '../../api/shared.ts'

export type Json = Record<string, unknown>

/** A title that names a component; the titles of settings and the like are sentences. */
const COMPONENT = /^[A-Z][A-Za-z0-9]*$/
/** Their values are data, not schemas. */
const DATA = new Set(['examples', 'example', 'enum', 'const', 'default', 'required', 'x-accepts'])

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * A copy in which each schema with a title is a reference to a component of that name, and says what the server accepts.
 * Throws `Error` if two schemas have one name.
 */
export function hoist(value: unknown, components: Map<string, Json>): unknown {
  if (Array.isArray(value)) return value.map((one) => hoist(one, components))
  if (!isObject(value)) return value
  const said = documented(value)
  const copy = Object.fromEntries(
    Object.entries(said).map(([key, one]) => [key, DATA.has(key) ? one : hoist(one, components)]),
  )
  const { title } = copy
  if (typeof title !== 'string' || !COMPONENT.test(title)) return copy
  const known = components.get(title)
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(copy))
    throw new Error(`two schemas have the title ${title}`)
  components.set(title, copy)
  return { $ref: `#/components/schemas/${title}` }
}

/** The schema with the constraints of its mark, without our marks, in the forms that generators know. */
function documented(schema: Json): Json {
  const {
    [ACCEPTS_MARK]: constraints,
    [DOCUMENTED_AS_MARK]: instead,
    [OPTIONAL_BODY_MARK]: _,
    const: constant,
    contentEncoding,
    patternProperties,
    ...own
  } = schema
  if (isObject(instead)) return instead
  if (constant !== undefined) own['enum'] = [constant]
  if (contentEncoding !== undefined) own['format'] = 'byte'
  if (isObject(patternProperties)) own['additionalProperties'] = Object.values(patternProperties)[0]
  if (!isObject(constraints)) return own
  const { required, ...rest } = constraints
  // `true` marks a parameter, and belongs to that.
  return Array.isArray(required)
    ? { ...own, ...rest, required: [...asList(own['required']), ...required] }
    : { ...own, ...rest }
}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** Whether core demands a parameter that its schema does not. */
export function isDemanded(schema: Json): boolean {
  const constraints = schema[ACCEPTS_MARK]
  return isObject(constraints) && constraints['required'] === true
}
