import type { Config } from './config.ts'
import { type Loaded, type LoadOptions, loadConfig } from './load.ts'
import { FIELDS, type Field } from './schema.ts'

export interface ShownSetting {
  readonly name: string
  /** In the form of the file; `[redacted]` for a secret. */
  readonly value: string
  /** `flag --listen`, `environment MAYFLY_LISTEN`, `file:line:col`, `default` or `derived`. */
  readonly origin: string
  /** Whether a reload takes another value. */
  readonly canReload: boolean
  readonly description: string
}

/** Every setting of a server with these flags, variables and file. Throws `ConfigError` like `loadConfig`. */
export async function showSettings(options: LoadOptions): Promise<ShownSetting[]> {
  return shownSettings(await loadConfig(options))
}

/** Every setting of a configuration that was loaded. */
export function shownSettings({ config, origins, given }: Loaded): ShownSetting[] {
  return FIELDS.map((field) => {
    const origin = origins[field.path] ?? 'default'
    const isGiven = origin !== 'default' && origin !== 'derived'
    return {
      name: field.path,
      value: isGiven ? shown(field, given[field.path]) : preset(field, config),
      origin,
      canReload: field.canReload,
      description: field.description,
    }
  })
}

const REDACTED = '[redacted]'

function programOf(wire: unknown): string {
  const [program = '', ...rest] = typeof wire === 'string' ? wire.split(/\s+/) : (wire as string[])
  return rest.length === 0 ? program : `${program} ${REDACTED}`
}

/** Whoever knows the address of a webhook can often post there. */
function withoutPaths(name: string, value: unknown): unknown {
  if (name !== 'url' || typeof value !== 'string') return value
  const [, start, rest] = /^([a-z]+:\/\/[^/?#]*)\/?(.*)$/is.exec(value) ?? []
  if (start === undefined) return REDACTED
  return rest === '' ? value : `${start}/${REDACTED}`
}

const preset = (field: Field, config: Config) =>
  derived(field, config) ?? field.defaultText.replaceAll('`', '')

/** The settings that may hold a secret in the middle: in the words after a command, or in the path of an address. */
function shown(field: Field, wire: unknown): string {
  if (field.secret) return REDACTED
  if (field.path === 'master_key_command') return programOf(wire)
  if (field.path === 'notify') return JSON.stringify(wire, withoutPaths)
  return typeof wire === 'string' ? wire : JSON.stringify(wire)
}

/** The value of a setting that follows from others. */
function derived({ path }: Field, { issuer, signingDomain, masterKey }: Config): string | undefined {
  switch (path) {
    case 'issuer':
      return issuer
    case 'signing_domain':
      return signingDomain
    case 'master_key_file':
      return masterKey.from === 'file' ? masterKey.file : 'none'
    default:
      return undefined
  }
}
