import { readConfigFile } from '../files/yaml-file.ts'
import type { Config } from './config.ts'
import { type LoadOptions, loadConfig } from './load.ts'
import { CONFIG_ENV, CONFIG_FLAG, FIELDS, type Field } from './schema.ts'
import { type Entry, gatherEnvironment, gatherFile, gatherFlags } from './sources.ts'

export interface ShownSetting {
  readonly name: string
  /** In the form of the file; `[redacted]` for a secret. */
  readonly value: string
  /** `flag --listen`, `environment MAYFLY_LISTEN`, `file:line:col`, `default` or `derived`. */
  readonly origin: string
}

/** Every setting of a server with these flags, variables and file. Throws `ConfigError` like `loadConfig`. */
export async function showSettings(options: LoadOptions): Promise<ShownSetting[]> {
  const { config, origins } = await loadConfig(options)
  const entries = [...gatherFlags(options.argv).entries, ...gatherEnvironment(options.env).entries]
  const file = options.argv[CONFIG_FLAG] ?? options.env[CONFIG_ENV]
  if (typeof file === 'string' && file !== '')
    entries.push(...gatherFile(await readConfigFile(file, file, options.readFile)).entries)
  return FIELDS.map((field) => ({
    name: field.path,
    value: shown(
      field,
      entries.find((entry) => entry.field === field),
      config,
    ),
    origin: origins[field.path] ?? 'default',
  }))
}

function shown(field: Field, entry: Entry | undefined, config: Config): string {
  if (entry === undefined) return derived(field, config) ?? field.defaultText.replaceAll('`', '')
  if (field.secret) return '[redacted]'
  return typeof entry.wire === 'string' ? entry.wire : JSON.stringify(entry.wire)
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
