import { Ajv, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'

type Json = Record<string, unknown>

/** Checks requests and replies of a fake against the vendor's own OpenAPI 3.0 description. */
export function readOpenApi(document: unknown) {
  const ajv = new Ajv({ strict: false, inlineRefs: false })
  // The named export of the types is the module itself.
  const formats = addFormats as unknown as (one: Ajv) => void
  formats(ajv)
  const whole = withNulls(document) as Json
  ajv.addSchema({ ...whole, $id: 'api' })
  const compiled = new Map<string, ValidateFunction>()

  function check(path: readonly (string | number)[], value: unknown, what: string): void {
    const pointer = path.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `api#/${encodeURI(pointer)}` })
    compiled.set(pointer, validate)
    if (!validate(value)) {
      const faults = validate.errors?.slice(0, 12).map((one) => `${one.instancePath} ${one.message}`)
      throw new Error(`${what} does not fit the OpenAPI description: ${faults?.join('; ')}`)
    }
  }

  const content = ['content', 'application/json', 'schema']
  return {
    /** Throws for a body that the operation does not take. */
    checkRequest: (path: string, method: string, body: unknown) =>
      check(['paths', path, method, 'requestBody', ...content], body, `The body of ${method} ${path}`),
    /** Throws for a reply that the vendor would not send. */
    checkReply(path: string, method: string, status: number, body: unknown): void {
      const at = ['paths', path, method, 'responses', String(status)]
      const answer = at.reduce<unknown>((node, part) => (node as Json | undefined)?.[part], whole) as Json
      // Errors are described for some operations only.
      if (answer === undefined && status >= 400) return
      if (answer === undefined) throw new Error(`${method} ${path} never answers ${status}`)
      const shared = typeof answer['$ref'] === 'string' ? answer['$ref'].slice(2).split('/') : at
      const found = shared.reduce<unknown>((node, part) => (node as Json)[part], whole) as Json
      if (found['content'] === undefined) return
      check([...shared, ...content], body, `The reply ${status} of ${method} ${path}`)
    },
    /** The smallest value that fits a schema of the description. */
    sample: (name: string): Json =>
      sampleOf(whole, { $ref: `#/components/schemas/${name}` } as Json, 0) as Json,
  }
}

/** `nullable` of OpenAPI 3.0 as JSON Schema has it. */
function withNulls(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withNulls)
  if (typeof node !== 'object' || node === null) return node
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, withNulls(value)]))
  if (copy['nullable'] !== true) return copy
  delete copy['nullable']
  return { anyOf: [copy, { type: 'null' }] }
}

const FORMATS: Record<string, string> = {
  uri: 'https://github.test/x',
  'date-time': '2026-01-01T00:00:00Z',
  email: 'a@github.test',
}

function sampleOf(root: Json, schema: Json, depth: number): unknown {
  const ref = schema['$ref']
  if (typeof ref === 'string') {
    const parts = ref.slice(2).split('/')
    return sampleOf(root, parts.reduce<unknown>((node, part) => (node as Json)[part], root) as Json, depth)
  }
  const choices = (schema['anyOf'] ?? schema['oneOf']) as Json[] | undefined
  if (depth > 0 && choices?.some((choice) => choice['type'] === 'null')) return null
  if (choices !== undefined) return sampleOf(root, choices[0] as Json, depth)
  if (Array.isArray(schema['allOf'])) {
    return Object.assign({}, ...(schema['allOf'] as Json[]).map((one) => sampleOf(root, one, depth)))
  }
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (schema['type'] === 'array') return []
  if (schema['type'] === 'boolean') return false
  if (schema['type'] === 'integer' || schema['type'] === 'number') return 1
  if (schema['type'] === 'string') {
    return FORMATS[String(schema['format'])] ?? 'a'.repeat(Number(schema['minLength'] ?? 1))
  }
  const properties = (schema['properties'] ?? {}) as Record<string, Json>
  const required = (schema['required'] ?? []) as string[]
  return Object.fromEntries(required.map((name) => [name, sampleOf(root, properties[name] ?? {}, depth + 1)]))
}
