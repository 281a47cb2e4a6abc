import { processHost } from './frame/process-host.ts'
import { run } from './frame/program.ts'

/** Runs the command line of this process. */
export async function start(): Promise<void> {
  // Without a listener, this signal opens Node's debugger, on a port that every local user can reach.
  process.on('SIGUSR1', () => {})
  process.exitCode = await run(process.argv.slice(2), processHost())
}
