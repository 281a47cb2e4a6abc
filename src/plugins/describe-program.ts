import type { PluginProtocol } from '../domain/plugin.ts'
import { describeCreddyPlugin } from './creddy/open-creddy.ts'
import type { Description } from './description.ts'
import type { StartParts } from './mayfly/client.ts'
import { describePlugin } from './mayfly/describe.ts'
import type { Program } from './process/program.ts'

const DESCRIBE = { 'mayfly.plugin.v1': describePlugin, 'creddy.plugin.v1': describeCreddyPlugin }

/** Starts a process from this program, asks it what it is, and ends it. Throws `BackendError`. */
export function describeProgram(
  program: Program,
  protocol: PluginProtocol,
  options: Pick<StartParts, 'isolation' | 'log'>,
): Promise<Description> {
  return DESCRIBE[protocol](program, options)
}
