import type { Host } from '../../backends/kind.ts'
import { DAY_MS, MAX_JSON_DEPTH } from '../../domain/limits.ts'
import { PLUGIN_NAME_PATTERN } from '../../domain/plugin.ts'
import type { Description } from '../description.ts'
import type { Isolation } from '../process/isolation.ts'
import type { Program } from '../process/program.ts'
import type { Description as Said } from '../proto/mayfly_plugin_v1_pb.ts'
import { readSchema, SchemaFault } from '../schema.ts'
import { isForm } from '../scope-forms.ts'
import { misconfigured, withProcess } from './client.ts'

const TYPE = new RegExp(PLUGIN_NAME_PATTERN)
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$/
const VARIABLE = /^[A-Z][A-Z0-9_]{0,63}$/
const NO_CONTROLS = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u
const MAX_SCHEMA_BYTES = 65_536
const MAX_FORMS = 64
const MAX_VARIABLES = 32
const LONGEST_TTL_MS = 3_650 * DAY_MS

/** Starts a process from this program, asks it what it is, and ends it. Throws `BackendError`. */
export async function describePlugin(
  program: Program,
  options: { readonly isolation: Isolation; readonly log: Host['log'] },
): Promise<Description> {
  const parts = { ...options, name: 'that was given', hide: (text: string) => text }
  return withProcess(program, parts, async (call) =>
    readDescription(await call((client, how) => client.describe({}, how))),
  )
}

/** Checks everything that it says. Throws `BackendError` (`misconfigured`). */
export function readDescription(said: Said): Description {
  if (!TYPE.test(said.type)) throw misconfigured('that was given', 'does not say which kind it is')
  try {
    return read(said)
  } catch (error) {
    if (error instanceof SchemaFault) throw misconfigured(said.type, error.message)
    throw error
  }
}

function read(said: Said): Description {
  const config = parse(said.configSchemaJson, 'configuration')
  const params = said.paramsSchemaJson === '' ? NOTHING : parse(said.paramsSchemaJson, 'options')
  readSchema(config, 'configuration')
  readSchema(params, 'options')
  if (!VERSION.test(said.version)) throw new SchemaFault('states a wrong version')
  const forms = said.scopes.map(({ form, gives }) => {
    if (!isForm(form)) throw new SchemaFault('states a form of scopes that is none')
    return { form, gives: text(gives, 'what a scope gives', 200) }
  })
  if (forms.length === 0 || forms.length > MAX_FORMS)
    throw new SchemaFault('states no forms of scopes, or too many')
  return {
    type: said.type,
    title: text(said.title, 'a title', 80),
    version: said.version,
    config,
    params,
    limits: limitsOf(said),
    revocation: said.revokes ? 'exact' : 'expiry_only',
    recovers: said.revokes && said.recovers,
    scopes: { forms, help: text(said.scopesHelp, 'help on scopes', 1_000) },
    environment: environmentOf(said),
    offers: offersOf(said),
  }
}

const NOTHING = { type: 'object', properties: {}, additionalProperties: false }

function parse(json: string, what: string): Readonly<Record<string, unknown>> {
  if (Buffer.byteLength(json) > MAX_SCHEMA_BYTES)
    throw new SchemaFault(`states a ${what} schema that is too long`)
  let schema: unknown
  try {
    schema = JSON.parse(json)
  } catch {
    throw new SchemaFault(`states a ${what} schema that is not JSON`)
  }
  if (!isShallow(schema, MAX_JSON_DEPTH * 2))
    throw new SchemaFault(`states a ${what} schema that is too deep`)
  return schema as Record<string, unknown>
}

/** Defaults and examples may be any JSON, which is written again and again. */
function isShallow(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1))
}

function text(value: string, what: string, longest: number): string {
  if (value !== '' && value.length <= longest && NO_CONTROLS.test(value)) return value
  throw new SchemaFault(`does not state ${what}, or not as one short line`)
}

function limitsOf(said: Said): Description['limits'] {
  const least = Number(said.minTtlMs)
  const most = Number(said.maxTtlMs)
  const isRight = (ms: number) => ms >= 0 && ms <= LONGEST_TTL_MS
  if (!isRight(least) || !isRight(most) || (most !== 0 && most < Math.max(least, 1_000))) {
    throw new SchemaFault('states lifetimes that cannot be kept')
  }
  return {
    ...(least === 0 ? {} : { minTtlMs: least }),
    ...(most === 0 ? {} : { maxTtlMs: most }),
    ...(said.limitsWhy === '' ? {} : { why: text(said.limitsWhy, 'a reason of its limits', 200) }),
  }
}

function environmentOf({ environment }: Said): Description['environment'] {
  const entries = Object.entries(environment)
  if (entries.length > MAX_VARIABLES) throw new SchemaFault('states too many variables')
  for (const [name, template] of entries) {
    const isRight =
      VARIABLE.test(name) &&
      template.length <= 256 &&
      /^[^{}\p{Cc}]*(\{[a-z][a-z0-9_]*\}[^{}\p{Cc}]*)+$/u.test(template)
    if (!isRight) throw new SchemaFault('states a variable without a name or without a {field}')
  }
  // In an order that does not depend on the language: descriptions are compared.
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function offersOf(said: Said): Description['offers'] {
  return [
    ...(said.completes ? (['complete'] as const) : []),
    ...(said.lists && said.revokes ? (['list'] as const) : []),
    ...(said.keepsUp ? (['keepUp'] as const) : []),
    ...(said.retires ? (['retire'] as const) : []),
    ...(said.rotates ? (['rotation'] as const) : []),
  ]
}
