import { create } from '@bufbuild/protobuf'
import type { CallOptions, Client } from '@connectrpc/connect'
import type { Description } from '../description.ts'
import { misconfigured } from '../mayfly/client.ts'
import { readDescription } from '../mayfly/describe.ts'
import type { ConfigField, Plugin } from '../proto/creddy_plugin_v1_pb.ts'
import { DescriptionSchema } from '../proto/mayfly_plugin_v1_pb.ts'
import { cleanMessage } from '../text.ts'
import { readPatterns, type ScopePattern } from './scopes.ts'

/** A plugin of the existing protocol `creddy.plugin.v1`. */
export type CreddyClient = Client<typeof Plugin>

/** It counts in seconds. */
const SECOND_MS = 1_000

/** What a plugin of the existing protocol says of itself. */
interface CreddyAnswers {
  /** In our terms, checked like what a plugin of our own protocol says. */
  readonly description: Description
  /** Its forms of scopes, and how it wants to get them. */
  readonly patterns: readonly ScopePattern[]
}

/** Throws `BackendError`. */
export async function readCreddy(client: CreddyClient, options: CallOptions): Promise<CreddyAnswers> {
  const [info, { scopes }, { fields }, constraints] = await Promise.all([
    client.info({}, options),
    client.scopes({}, options),
    client.configSchema({}, options),
    client.constraints({}, options),
  ])
  const stated = scopes.map((one) => ({ ...one, gives: short(one.description, 200) }))
  const patterns = readPatterns(info.name, stated)
  const description = readDescription(
    create(DescriptionSchema, {
      type: info.name,
      title: short(info.description, 80) || info.name,
      version: info.version || '0',
      configSchemaJson: JSON.stringify(configSchema(info.name, fields)),
      paramsSchemaJson: JSON.stringify(PARAMS),
      ...limitsOf(constraints),
      revokes: true,
      recovers: false,
      scopes: patterns.map(({ form }) => form),
      scopesHelp: helpOf(patterns.slice(0, Math.max(1, scopes.length))),
    }),
  )
  return { description, patterns }
}

/** The protocol has parameters of a request, as texts with names, and no way to say which. */
const PARAMS = {
  type: 'object',
  additionalProperties: false,
  properties: {
    parameters: {
      type: 'array',
      description: 'What the plugin takes beside the scope, each as name=value.',
      items: { type: 'string', maxLength: 1_024, pattern: '^[A-Za-z0-9_.-]+=' },
      maxItems: 32,
    },
  },
}

export interface CreddyParams {
  readonly parameters?: readonly string[]
}

/** As the plugin gets them. */
export function parametersOf({ parameters = [] }: CreddyParams): Record<string, string> {
  return Object.fromEntries(
    parameters.map((one) => {
      const end = one.indexOf('=')
      return [one.slice(0, end), one.slice(end + 1)]
    }),
  )
}

interface Constraints {
  readonly hasConstraints: boolean
  readonly minTtlSeconds: bigint
  readonly maxTtlSeconds: bigint
  readonly description: string
}

function limitsOf({ hasConstraints, minTtlSeconds, maxTtlSeconds, description }: Constraints) {
  const [min, max] = hasConstraints ? [Number(minTtlSeconds), Number(maxTtlSeconds)] : [0, 0]
  return {
    minTtlMs: BigInt(Math.max(1, min) * SECOND_MS),
    maxTtlMs: BigInt(Math.max(0, max) * SECOND_MS),
    limitsWhy: hasConstraints ? short(description, 200) : '',
  }
}

/** The plugin does not say which field selects the upstream, so every field that is not secret counts as one that may. */
function configSchema(plugin: string, fields: readonly ConfigField[]): Record<string, unknown> {
  return {
    type: 'object',
    additionalProperties: false,
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(plugin, field)])),
  }
}

const MARKED = { 'x-upstream': true }
const SECRET = { type: 'string', 'x-secret': true, minLength: 1 }

const TYPES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  string: { type: 'string', ...MARKED },
  int: { type: 'integer', ...MARKED },
  bool: { type: 'boolean', ...MARKED },
  array: { type: 'array', items: { type: 'string' }, maxItems: 256, ...MARKED },
  secret: SECRET,
  // The content of a file is the value, so the command line reads it, as it does with secrets.
  file: SECRET,
}

function fieldSchema(plugin: string, field: ConfigField): Record<string, unknown> {
  const { type } = field
  const schema = TYPES[type]
  if (schema === undefined) {
    throw misconfigured(plugin, 'has a field of configuration of a type that Mayfly does not know')
  }
  const says = short(field.description, 500)
  const description = type === 'file' ? `${says === '' ? 'A file' : says} (the content of a file)` : says
  const preset = 'x-secret' in schema ? undefined : defaultOf(field)
  return {
    ...schema,
    ...(description === '' ? {} : { description }),
    ...(preset === undefined ? {} : { default: preset }),
  }
}

/** Defaults arrive as text. One that does not parse as the type of its field is left to the plugin. */
function defaultOf({ type, default: text }: ConfigField): unknown {
  if (text === '') return undefined
  if (type === 'string') return text
  if (type === 'int') return /^-?\d{1,15}$/.test(text) ? Number(text) : undefined
  if (type === 'bool') return text === 'true' || text === 'false' ? text === 'true' : undefined
  return text.split(',').map((one) => one.trim())
}

function helpOf(patterns: readonly ScopePattern[]): string {
  const forms = patterns.map(({ form }) => form.form).join(', ')
  return short(`One scope for each credential, of the form ${forms}.`, 1_000)
}

const short = (text: string, longest: number) => cleanMessage(text, (same) => same, longest)
