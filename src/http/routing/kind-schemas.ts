import type { Core } from '../../core/context.ts'
import type { Json } from './openapi-components.ts'

type Kind = Core['backends']['kinds'] extends ReadonlyMap<string, infer K> ? K : never

/** `CreateBackend` and `ChangeBackend` with the configuration of each kind, in place of "any object". */
export function addKindSchemas(components: Map<string, Json>, kinds: Iterable<Kind>): void {
  const create = components.get('CreateBackend')
  const change = components.get('ChangeBackend')
  if (create === undefined || change === undefined) return
  const all = [...kinds].sort((a, b) => (a.type < b.type ? -1 : 1))
  for (const kind of all) {
    components.set(`${nameOf(kind)}Config`, configOf(kind))
    components.set(`Create${nameOf(kind)}Backend`, createOf(kind, create))
  }
  components.set('CreateBackend', {
    title: 'CreateBackend',
    description: 'One form for each kind.',
    oneOf: all.map((kind) => refTo(`Create${nameOf(kind)}Backend`)),
  })
  const { type: _, ...changeable } = change['properties'] as Json
  components.set('ChangeBackend', {
    ...change,
    properties: {
      ...changeable,
      config: {
        description: 'The new configuration. Secrets that are left out, or sent as [redacted], stay.',
        anyOf: all.map((kind) => refTo(`${nameOf(kind)}Config`)),
      },
    },
  })
}

const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** `my-kind` → `MyKind`. */
function nameOf({ type }: Kind): string {
  return type.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function createOf(kind: Kind, base: Json): Json {
  const needsConfig = requiredOf(kind.config).length > 0
  return {
    ...base,
    title: `Create${nameOf(kind)}Backend`,
    description: kind.title,
    examples: examplesOf(kind),
    required: needsConfig ? ['type', 'config'] : ['type'],
    properties: {
      ...(base['properties'] as Json),
      type: { type: 'string', enum: [kind.type], description: 'The kind.' },
      config: refTo(`${nameOf(kind)}Config`),
    },
  }
}

function examplesOf(kind: Kind): Json[] {
  const examples: unknown[] = Reflect.get(kind.config, 'examples') ?? []
  return examples.map((config) => ({ type: kind.type, config }))
}

function configOf(kind: Kind): Json {
  const schema = plain(JSON.parse(JSON.stringify(kind.config))) as Json
  return { ...schema, title: `${nameOf(kind)}Config`, required: requiredOf(kind.config) }
}

/** A field with a default may be left out. */
function requiredOf({ required, properties }: Kind['config']): string[] {
  return (required ?? []).filter((name: string) => !('default' in (properties[name] ?? {})))
}

/** Without our marks, but for the one of secrets; in the forms that generators know: `enum`, `additionalProperties`. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([key]) => !key.startsWith('x-') || key === 'x-secret')
  const { anyOf, patternProperties, ...own } = Object.fromEntries(kept.map(([key, one]) => [key, plain(one)]))
  const rest = patternProperties === undefined ? own : { ...own, additionalProperties: true }
  if (anyOf === undefined) return rest
  const constants = (anyOf as Json[]).map((one) => one['const'])
  return constants.every((one) => typeof one === 'string')
    ? { ...rest, type: 'string', enum: constants }
    : { ...rest, anyOf }
}
