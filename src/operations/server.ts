import { closeSync, openSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { ConfigSource } from '../app/app.ts'
import { keepRunning } from '../cli/frame/keep-running.ts'
import type { OptionSpec, Options } from '../cli/frame/options.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { whileWaiting } from '../cli/frame/waiting.ts'
import { rememberServer } from '../cli/session/last-server.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { CONFIG_ENV, CONFIG_FLAG, FIELDS, type Field } from '../config/schema.ts'
import { type Flags, flagKey } from '../config/sources.ts'
import { ConfigError } from '../domain/fault.ts'
import { hostPort } from '../domain/network/address.ts'

/** The flags of `mayfly server`, one for each setting that has a flag. */
function serverOptions(): Options {
  const file = {
    form: '<file>',
    description: `Configuration file, YAML. [default: none; env: ${CONFIG_ENV}]`,
  }
  const options = FIELDS.flatMap((field) =>
    field.flag === undefined ? [] : [[flagKey(field.flag), optionOf(field)]],
  )
  return { [CONFIG_FLAG]: file, ...Object.fromEntries(options) }
}

function optionOf(field: Field): OptionSpec {
  const facts = [`default: ${field.defaultText}`, ...(field.env === undefined ? [] : [`env: ${field.env}`])]
  const isRepeatable = (field.schema as { type?: string }).type === 'array'
  const text = `${field.description}${isRepeatable ? ' May be repeated.' : ''} [${facts.join('; ')}]`
  return {
    description: text.replaceAll('`', ''),
    ...(field.argument === '' ? {} : { form: field.argument }),
    ...(isRepeatable ? { repeatable: true } : {}),
  }
}

export const verb = defineVerb({
  description:
    'Runs the server. A setting comes from its flag, or else its environment variable, the configuration file, or its default.',
  examples: {
    'mayfly server --quickstart': 'try it: creates a backend and an agent, with data in ./mayfly-data',
    'mayfly server --config /etc/mayfly.yaml': 'run it with a configuration file',
  },
  globals: false,
  ownSignals: true,
  options: serverOptions(),
  run: (context, flags) => runServer(context, flags),
})

/** Returns the exit code. */
async function runServer(context: Context, flags: Flags): Promise<number> {
  // All files that the server creates (database, socket, keys) are for this user alone.
  process.umask(0o077)
  try {
    const load = () => loadConfig({ argv: flags, env: process.env, readFile })
    return await serve(context, { loaded: await load(), load }, flags)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const { source, message } of error.faults) context.stderr.write(`mayfly: ${source}: ${message}\n`)
    return 2
  }
}

function placeOf({ dataDir, listen: { host } }: Config, address: string) {
  const { port } = new URL(address)
  return { dataDir, listen: hostPort(host, port) }
}

/** The configuration file, as the user named it. */
function fileOf({ env }: Context, flags: Flags): string | undefined {
  const file = flags[CONFIG_FLAG] ?? env[CONFIG_ENV]
  return typeof file === 'string' && file !== '' ? file : undefined
}

/** Whether a terminal controls this process, which sends SIGHUP when it closes. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

async function serve(context: Context, source: ConfigSource, flags: Flags): Promise<number> {
  const { config, origins } = source.loaded
  const { createLogger } = await import('../log/log.ts')
  const noColor = (process.env['NO_COLOR'] ?? '') !== ''
  const log = createLogger({ level: config.logLevel, format: config.logFormat, noColor })
  log.debug({ origins }, 'configuration')
  try {
    const code = await keepRunning({
      start: async (signal) => {
        const { startServer } = await import('../app/app.ts')
        const running = await whileWaiting(context, 'Starting', startServer(source, log, signal))
        await rememberServer(context, { ...placeOf(config, running.address), config: fileOf(context, flags) })
        return running
      },
      log,
      hasTerminal: hasTerminal(),
      shutdownTimeoutMs: config.shutdownTimeoutMs,
      exit: (status) => process.exit(status),
    })
    return code
  } catch (error) {
    if (error instanceof ConfigError) throw error
    log.error({ err: error }, 'the server could not start')
    return 1
  }
}
