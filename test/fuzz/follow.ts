import fc from 'fast-check'
import type { Schema } from './values.ts'

interface Followed extends Schema {
  const?: unknown
  dependentRequired?: Record<string, string[]>
}

/** Values as somebody draws them who knows nothing but the document: its examples, and what its constraints allow. */
export function follow(schema: Followed): fc.Arbitrary<unknown> {
  const { examples = [] } = schema
  const drawn = constrained(schema)
  return examples.length === 0 ? drawn : fc.oneof(fc.constantFrom(...examples), drawn)
}

function constrained(schema: Followed): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if ('const' in schema) return fc.constant(schema.const)
  const branches = schema.oneOf ?? schema.anyOf
  if (branches !== undefined) return fc.oneof(...branches.map((one) => follow(one)))
  return fc.oneof(...[schema.type].flat().map((type) => ofType(type, schema)))
}

function ofType(type: string | undefined, schema: Followed): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return text(schema)
    case 'integer':
    case 'number':
      return fc.integer({ min: schema.minimum ?? 1, max: Math.min(schema.maximum ?? 100, 2 ** 31) })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(follow(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 3, 3),
      })
    case 'object':
      return object(schema)
    default:
      return fc.constantFrom('text', 7, true)
  }
}

function text({ pattern, format, minLength = 0, maxLength = 4_000 }: Followed): fc.Arbitrary<string> {
  if (format === 'date-time') return fc.constantFrom('2026-11-21T10:15:00Z', '2026-01-01T00:00:00.5+01:00')
  if (format === 'date') return fc.constant('2026-11-21')
  if (format === 'uri') return fc.webUrl()
  if (pattern === undefined)
    return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)) })
  return fc
    .stringMatching(new RegExp(pattern), { size: 'small' })
    .filter((one) => one.length >= minLength && one.length <= maxLength)
}

function object(schema: Followed): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(schema.properties ?? {})
  if (fields.length === 0)
    return fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.boolean(), { maxKeys: 2 })
  const parts = Object.fromEntries(fields.map(([key, one]) => [key, follow(one)]))
  const requiredKeys = (schema.required ?? []).filter((key) => key in parts)
  return fc.record(parts, { requiredKeys }) as fc.Arbitrary<Record<string, unknown>>
}
