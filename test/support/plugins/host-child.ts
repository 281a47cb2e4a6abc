import { openBuiltPlugin } from '../built-plugin.ts'
import { createTestHost } from '../host.ts'
import type { PluginName } from './build.ts'

/** A host of one plugin, to be killed: writes the pids of the plugin, and lives on. */
const plugin = await openBuiltPlugin(process.argv[2] as PluginName)
const config = { address: '127.0.0.1:1', username: 'nobody', password: 'none' }
await plugin.kind.open(config, createTestHost('orphans').host)
process.stdout.write(`${JSON.stringify(await plugin.pids())}\n`)
setInterval(() => undefined, 60_000)
