import { readdir, readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError, EXIT } from '../../cli/frame/failure.ts'
import { text, type ValuesOf } from '../../cli/frame/options.ts'
import type { Context } from '../../cli/frame/verb.ts'
import { givenOf } from '../../cli/session/session.ts'
import type { Config } from '../../config/config.ts'
import type { Flags } from '../../config/sources.ts'
import { faultsOf, noteFaults } from '../config-file.ts'

/** Where an installation has its configuration. */
export const SYSTEM_CONFIG = '/etc/mayfly/mayfly.yaml'

/** The options that lead to the server on this machine. */
export const INSTALLATION = {
  config: text(
    '<file>',
    `configuration file of the server [default: ${SYSTEM_CONFIG} if it exists; env: MAYFLY_CONFIG]`,
  ),
  masterKeyFile: text('<path>', 'file with the master key [env: MAYFLY_MASTER_KEY_FILE]'),
}

export type Installation = ValuesOf<typeof INSTALLATION>

/** Files by their names in the directory of the command. */
export const filesFrom = ({ cwd }: Context) => ({
  readFile: (path: string) => readFile(resolve(cwd, path)),
  readDirectory: (path: string) => readdir(resolve(cwd, path)),
})

/** The configuration of the server, read as the server reads it. Throws `ConfigError`. */
export async function readInstallation(context: Context, options: Installation): Promise<Config> {
  const { loadConfig } = await import('../../config/load.ts')
  const { dataDir } = context.globals
  const config = options.config ?? (await systemConfig(context))
  const argv: Flags = {
    ...absolute(context, { dataDir, masterKeyFile: options.masterKeyFile }),
    ...(config === undefined ? {} : { config }),
  }
  const loaded = await loadConfig({
    argv,
    env: context.env,
    ...filesFrom(context),
  })
  return loaded.config
}

/** Runs the work of a verb. Reports every fault of the configuration, one on a line. */
export async function reportFaults(context: Context, work: () => Promise<void>): Promise<number> {
  try {
    await work()
    return EXIT.done
  } catch (error) {
    const { code, path } = error as { code?: unknown; path?: unknown }
    if (code === 'EACCES' || code === 'EPERM')
      throw new CliError('not_permitted', `This user may not use ${String(path)}.`, {
        hint: 'Run it as root, with sudo, or as the user of the server.',
        cause: error,
      })
    noteFaults(context, faultsOf(error))
    return EXIT.usage
  }
}

/** A data directory that is named belongs to another server, or to none. */
async function systemConfig({ env, globals }: Context): Promise<string | undefined> {
  if (globals.dataDir !== undefined) return undefined
  if (['MAYFLY_CONFIG', 'MAYFLY_DATA_DIR'].some((name) => givenOf(env[name]) !== undefined)) return undefined
  return stat(SYSTEM_CONFIG).then(
    () => SYSTEM_CONFIG,
    () => undefined,
  )
}

const absolute = ({ cwd }: Context, paths: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(
    Object.entries(paths).flatMap(([name, path]) => (path === undefined ? [] : [[name, resolve(cwd, path)]])),
  )

export function inWords({ agents, bytes }: { readonly agents: number; readonly bytes: number }): string {
  const mib = bytes / 1024 / 1024
  return `${agents} ${agents === 1 ? 'agent' : 'agents'}, ${mib.toFixed(mib < 10 ? 1 : 0)} MiB`
}

/** Where the master key is. */
export function keyInWords({ masterKey }: Pick<Config, 'masterKey'>): string {
  switch (masterKey.from) {
    case 'file':
      return masterKey.file
    case 'environment':
      return 'the value of MAYFLY_MASTER_KEY'
    case 'command':
      return 'the key that master_key_command prints'
    default: {
      const never: never = masterKey
      return never
    }
  }
}
