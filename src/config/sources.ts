import type { TSchema } from 'typebox'
import { Errors } from 'typebox/value'
import { type Fault, quote } from '../domain/fault.ts'
import { isObject } from '../domain/formats/json.ts'
import { faultsOf, type SchemaFault } from '../domain/formats/schema-faults.ts'
import { didYouMean } from '../domain/formats/suggest.ts'
import type { ConfigFile, Path } from '../files/yaml-file.ts'
import { IdentitySchema, PlatformSchema } from './identity-schema.ts'
import { ReceiverSchema } from './notify-schema.ts'
import { PolicySchema } from './policy-schema.ts'
import { CONFIG_ENV, CONFIG_FLAG, ConfigSchema, FIELDS, type Field, namesIn, SECTIONS } from './schema.ts'

/** One value as one source gave it, in the form of the file. */
export interface Entry {
  readonly field: Field
  readonly wire: unknown
  readonly kind: 'flag' | 'environment' | 'file'
  /** The place of the value, or of a part of it. */
  locate(path?: Path, what?: 'key' | 'value'): string
}

export interface Gathered {
  readonly entries: Entry[]
  readonly faults: Fault[]
}

export type Environment = Readonly<Record<string, string | undefined>>
/** By camel-case name: `trustedProxy`. */
export type Flags = Readonly<Record<string, unknown>>

export function flagKey(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

export function gatherFlags(flags: Flags): Gathered {
  const entries: Entry[] = []
  const faults: Fault[] = []
  for (const [key, value] of Object.entries(flags)) {
    if (value === undefined || key === CONFIG_FLAG) continue
    const field = FIELDS.find(({ flag }) => flag !== undefined && flagKey(flag) === key)
    const source = `flag --${field?.flag ?? key}`
    if (field === undefined) {
      faults.push({ source, message: 'is not a flag of this command' })
      continue
    }
    const wire = typeof value === 'string' ? fromText(field.schema, value) : value
    entries.push({ field, wire, kind: 'flag', locate: () => source })
  }
  return { entries, faults }
}

/** Variables of the client verbs. */
const CLIENT_NAME =
  /^MAYFLY_(SERVER|TOKEN|TOKEN_FILE|CLIENT_ID|CLIENT_SECRET|CLIENT_SECRET_FILE|ID_TOKEN|IDENTITY_TOKEN_FILE|HOME|PROFILE|CA_FILE|KEYCHAIN|ALLOW_HTTP|GPG)$/
/** Variables that Kubernetes and Docker links set in every container next to a service named `mayfly` or `mayfly-…`. */
const INJECTED_NAME =
  /^MAYFLY_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/

export function gatherEnvironment(env: Environment): Gathered {
  const entries: Entry[] = []
  const faults: Fault[] = []
  const known = [...FIELDS.flatMap(({ env: name }) => name ?? []), CONFIG_ENV]
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('MAYFLY_') || text === undefined) continue
    const source = `environment ${name}`
    if (name === CONFIG_ENV || CLIENT_NAME.test(name)) continue
    const field = FIELDS.find((candidate) => candidate.env === name)
    if (field === undefined) {
      if (!INJECTED_NAME.test(name)) {
        faults.push({
          source,
          message: `is not an environment variable of the server${didYouMean(name, known)}`,
        })
      }
    } else if (text === '') {
      faults.push({ source, message: 'is empty: unset it or give it a value' })
    } else {
      entries.push({ field, wire: fromText(field.schema, text), kind: 'environment', locate: () => source })
    }
  }
  return { entries, faults }
}

/** Text that does not fit the type of the setting stays text; the type check then reports it. */
function fromText(schema: TSchema, text: string): unknown {
  const shape = schema as { type?: string; anyOf?: unknown }
  if (shape.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if (shape.type === 'integer' && /^\d{1,15}$/.test(text)) return Number(text)
  if ((shape.type === 'array' || shape.anyOf !== undefined) && text.startsWith('[')) {
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
  return shape.type === 'array' ? text.split(',').map((part) => part.trim()) : text
}

export function gatherFile(file: ConfigFile): Gathered {
  const entries: Entry[] = []
  const faults: Fault[] = []
  unknownKeys(file, [], file.value, Object.keys(ConfigSchema.properties), faults)
  for (const field of FIELDS) {
    const path = field.path.split('.')
    const [outer = '', inner] = path
    let wire = Object.hasOwn(file.value, outer) ? file.value[outer] : undefined
    if (inner !== undefined) wire = isObject(wire) && Object.hasOwn(wire, inner) ? wire[inner] : undefined
    if (wire === undefined) continue
    const locate: Entry['locate'] = (part = [], what) => file.locate([...path, ...part], what)
    if (field.sources.includes('file')) entries.push({ field, wire, kind: 'file', locate })
    else faults.push({ source: locate([], 'key'), message: notHere(field) })
  }
  for (const section of Object.keys(SECTIONS)) {
    const value = file.value[section]
    if (isObject(value)) unknownKeys(file, [section], value, namesIn(section), faults)
    else if (value !== undefined)
      faults.push({ source: file.locate([section]), message: `${section} must contain "key: value" lines` })
  }
  return { entries, faults }
}

function notHere(field: Field): string {
  const where = field.env !== undefined ? `environment variable ${field.env}` : `flag --${field.flag}`
  return `${field.path} can only be set by the ${where}`
}

function unknownKeys(
  file: ConfigFile,
  path: Path,
  value: Readonly<Record<string, unknown>>,
  known: readonly string[],
  faults: Fault[],
): void {
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue
    faults.push({
      source: file.locate([...path, key], 'key'),
      message: `${quote([...path, key].join('.'))} is not a setting${didYouMean(key, known)}`,
    })
  }
}

/** Faults of type and shape, each at its own place. Never shows values: one may be a secret in the wrong place. */
export function checkShape(entry: Entry): Fault[] {
  const faults: Fault[] = []
  const seen = new Set<string>()
  for (const fault of faultsOf(Errors(entry.field.schema, entry.wire))) {
    const { path } = fault
    const name = [entry.field.path, ...path].join('.')
    const keys = KEYS_OF[entry.field.path]
    if (fault.keyword === 'additionalProperties' && keys !== undefined) {
      for (const key of fault.fields) {
        const hint = didYouMean(key, keys())
        const message = `${quote(`${name}.${key}`)} is not a setting${hint}`
        faults.push({ source: entry.locate([...path, key], 'key'), message })
      }
      continue
    }
    const message = `${name} ${reasonOf(fault)}`
    if (seen.has(message)) continue
    seen.add(message)
    faults.push({ source: entry.locate(path), message })
  }
  return faults
}

/** The keys that may be meant by one that is unknown, of the settings that are lists of objects. */
const KEYS_OF: Readonly<Record<string, () => string[]>> = {
  policies: () => Object.keys(PolicySchema.properties),
  identities: () => [...Object.keys(IdentitySchema.properties), 'url', 'token_file', 'pattern'],
  platforms: () => [...Object.keys(PlatformSchema.properties), 'claim', 'value'],
  notify: () => [
    ...Object.keys(ReceiverSchema.properties),
    ...['url', 'secret_file', 'from', 'to', 'password_file', 'url_file', 'local'],
  ],
}

function reasonOf({ keyword, path, choices, fields, reason }: SchemaFault): string {
  switch (keyword) {
    case 'type':
      return reason === 'must be boolean'
        ? 'must be true or false'
        : reason.replace('must be', 'must be of type')
    case 'enum':
      return `must be one of: ${choices.join(', ')}`
    case 'required':
      return `requires ${fields.join(', ')}`
    case 'minLength':
      return 'must not be empty'
    case 'anyOf':
      // Of the claims of `identities`, or of a command.
      return path.includes('claims')
        ? 'must be text in quotes, such as "true" or "123", or {pattern: …}'
        : 'must be text or a list of words'
    default:
      return reason
  }
}
