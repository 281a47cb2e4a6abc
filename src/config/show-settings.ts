import type { Config } from './config.ts'
import { type LoadOptions, loadConfig } from './load.ts'
import { FIELDS, type Field } from './schema.ts'

export interface ShownSetting {
  readonly name: string
  /** In the form of the file; `[redacted]` for a secret. */
  readonly value: string
  /** `flag --listen`, `environment MAYFLY_LISTEN`, `file:line:col`, `default` or `derived`. */
  readonly origin: string
}

/** Every setting of a server with these flags, variables and file. Throws `ConfigError` like `loadConfig`. */
export async function showSettings(options: LoadOptions): Promise<ShownSetting[]> {
  const { config, origins, given } = await loadConfig(options)
  return FIELDS.map((field) => {
    const origin = origins[field.path] ?? 'default'
    const isGiven = origin !== 'default' && origin !== 'derived'
    return {
      name: field.path,
      value: isGiven ? shown(field, given[field.path]) : preset(field, config),
      origin,
    }
  })
}

const preset = (field: Field, config: Config) =>
  derived(field, config) ?? field.defaultText.replaceAll('`', '')

function shown(field: Field, wire: unknown): string {
  if (field.secret) return '[redacted]'
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
