import { usage } from '../cli/frame/failure.ts'
import type { Context } from '../cli/frame/verb.ts'
import { givenOf } from '../cli/session/session.ts'
import { ConfigError, type Fault } from '../domain/fault.ts'

/** The configuration file that is named, or that the environment names. Throws `CliError`. */
export function fileOf({ env }: Context, given: string | undefined): string {
  const file = given ?? givenOf(env['MAYFLY_CONFIG'])
  if (file !== undefined) return file
  throw usage('No configuration file given.', 'Give the configuration file of the server.')
}

/** The faults of a `ConfigError`. Throws any other error again. */
export function faultsOf(error: unknown): readonly Fault[] {
  if (!(error instanceof ConfigError)) throw error
  return error.faults
}

/** Reports every fault, one on a line. */
export function noteFaults({ out }: Context, faults: readonly Fault[]): void {
  for (const { source, message } of faults) out.note(`mayfly: ${source}: ${message}`)
}
