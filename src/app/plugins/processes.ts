import { readFileSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../domain/fault.ts'
import type { Log } from '../../log/log.ts'
import { describeProgram, kindOfPlugin } from '../../plugins/kind-of-plugin.ts'
import { type Isolation, pidSpace } from '../../plugins/process/isolation.ts'
import type { PluginProcesses } from './pinned-kinds.ts'

/** Starts plugins as the configuration says. Throws `ConfigError` for a user that they cannot run as. */
export function pluginProcesses({ pluginUser, pluginEnv }: Config, log: Log): PluginProcesses {
  const environment = Object.fromEntries(
    Object.entries(pluginEnv).map(([name, value]) => [name, value.reveal()]),
  )
  const user = pluginUser === undefined ? undefined : findUser(pluginUser)
  const options: { isolation: Isolation; log: Log } = { isolation: { user, environment }, log }
  return {
    describePlugin: (program, protocol) => describeProgram(program, protocol, options),
    kindOfPlugin: (plugin, onEnd) => {
      if (user === undefined && process.geteuid?.() === 0)
        log.warn(
          { plugin: plugin.name },
          'this plugin runs as root and may do what root may: set plugin_user',
        )
      if (user !== undefined && pidSpace() === undefined)
        log.warn(
          { plugin: plugin.name },
          'what this plugin starts may outlive it: the server may make no PID namespace here',
        )
      return kindOfPlugin(plugin, { ...options, onEnd })
    },
  }
}

/** By name or number. Throws `ConfigError`. */
export function findUser(
  text: string,
  passwd: () => string = () => readFileSync('/etc/passwd', 'utf8'),
  own: number | undefined = process.geteuid?.(),
): NonNullable<Isolation['user']> {
  const lines = passwd()
    .split('\n')
    .map((line) => line.split(':'))
  const line = lines.find(([name]) => name === text) ?? lines.find(([, , uid]) => uid === text)
  if (line === undefined && !/^\d+$/.test(text))
    throw fault(`there is no user ${text} in /etc/passwd: make one, or write its number`)
  const uid = Number(line?.[2] ?? text)
  const gid = Number(line?.[3] ?? text)
  if (own !== 0 && uid !== own)
    throw fault('only a server that runs as root can start plugins as another user: leave it out')
  return { uid, gid }
}

const fault = (message: string) => new ConfigError([{ source: 'plugin_user', message }])
