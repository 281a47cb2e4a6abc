import { type TSchema, Type } from 'typebox'
import type { Meta, Setting, SourceKind } from './setting.ts'
import { SETTINGS } from './settings.ts'

const STRICT = { additionalProperties: false } as const
const all = Object.entries(SETTINGS as Readonly<Record<string, Setting>>)

/** Settings that stand together under one key of the file. */
export const SECTIONS = {
  limits: 'Limits. Every limit answers 429 with `Retry-After`.',
  runs: 'Runs: work of an agent whose credentials end with it.',
} as const

/** The settings of a section by their names there. */
export const namesIn = (section: string) =>
  all.flatMap(([path]) => (path.startsWith(`${section}.`) ? [path.slice(section.length + 1)] : []))

const sectionSchema = ([section, description]: [string, string]) => {
  const fields = namesIn(section).map((name) => [
    name,
    all.find(([path]) => path === `${section}.${name}`)?.[1].schema,
  ])
  return [section, Type.Optional(Type.Object(Object.fromEntries(fields), { ...STRICT, description }))]
}

/** The configuration as it is written in the file. */
export const ConfigSchema = Type.Object(
  {
    ...Object.fromEntries(all.flatMap(([path, { schema }]) => (path.includes('.') ? [] : [[path, schema]]))),
    ...Object.fromEntries(Object.entries(SECTIONS).map(sectionSchema)),
  },
  { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'Mayfly configuration', ...STRICT },
)

export type FieldPath = keyof typeof SETTINGS

export interface Field {
  readonly path: FieldPath
  /** Its name in the code. */
  readonly name: string
  readonly parse: Setting['parse']
  readonly schema: TSchema
  readonly description: string
  readonly default: unknown
  /** The default as the documentation shows it. */
  readonly defaultText: string
  /** Name of the environment variable; undefined if it has none. */
  readonly env: string | undefined
  /** Name of the flag without dashes. */
  readonly flag: string | undefined
  readonly argument: string
  readonly secret: boolean
  readonly sources: readonly SourceKind[]
  readonly canReload: boolean
  readonly isShared: boolean
}

/** The name in `Values`. */
function codeName(path: string, { unit }: Setting): string {
  const camel = path
    .replace('limits.', '')
    .replace(/[._]([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return unit === 'ms' ? `${camel}Ms` : camel
}

function describe(path: FieldPath, { schema, parse, unit }: Setting): Field {
  const meta = schema as unknown as Meta
  const asked = meta['x-sources'] ?? ['flag', 'environment', 'file']
  const hasFlag = meta['x-argument'] !== undefined && asked.includes('flag')
  return {
    path,
    name: codeName(path, { schema, parse, unit }),
    schema,
    parse,
    description: meta.description,
    default: meta.default,
    defaultText: meta['x-default'] ?? `\`${JSON.stringify(meta.default).replaceAll('"', '')}\``,
    env: asked.includes('environment') ? `MAYFLY_${path.replace('.', '_').toUpperCase()}` : undefined,
    flag: hasFlag ? (meta['x-flag'] ?? path.replaceAll('_', '-')) : undefined,
    argument: meta['x-argument'] ?? '',
    secret: meta['x-secret'] === true,
    sources: asked.filter((source) => source !== 'flag' || hasFlag),
    canReload: meta['x-reload'] === true,
    isShared: meta['x-shared'] === true,
  }
}

export const FIELDS: readonly Field[] = all.map(([path, setting]) => describe(path as FieldPath, setting))

/** Flag and environment variable that name the configuration file. */
export const CONFIG_FLAG = 'config'
export const CONFIG_ENV = 'MAYFLY_CONFIG'
