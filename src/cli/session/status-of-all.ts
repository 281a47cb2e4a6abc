import type { AgentStatus } from '../../client/wire.ts'
import { CliError, EXIT, type Failure, failureOf, usage } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { openAgentSession } from './open.ts'
import { readProfiles } from './profiles.ts'

/** For one server; it answers at once, or it is not well. */
const PATIENCE_MS = 10_000

/** What the server of a profile says, or why there is no answer. */
type Answer = { readonly profile: string; readonly server: string } & (
  | { readonly status: AgentStatus }
  | { readonly error: Pick<Failure, 'code' | 'message'> }
)

/**
 * Asks the servers of all profiles at once, and shows a line for each. Returns the exit code of the first failure in the
 * order of the profiles, 0 if all answered. Throws `CliError` without profiles.
 */
export async function showAll(context: Context): Promise<number> {
  if (context.globals.profile !== undefined || context.globals.server !== undefined)
    throw usage('--all excludes --profile and --server.')
  const { profiles } = await readProfiles(context)
  const names = Object.keys(profiles)
  if (names.length === 0)
    throw new CliError('not_logged_in', 'There are no profiles on this machine.', {
      exit: EXIT.unauthenticated,
      hint: 'Run `mayfly enroll` or `mayfly login`.',
    })
  const answers = await Promise.all(
    names.map(async (profile): Promise<{ answer: Answer; exitCode: number }> => {
      const server = profiles[profile]?.server ?? ''
      try {
        const status = await ask(context, profile)
        return { answer: { profile, server, status }, exitCode: EXIT.done }
      } catch (error) {
        context.signal.throwIfAborted()
        const { code, message, exitCode } = failureOf(error)
        return { answer: { profile, server, error: { code, message } }, exitCode }
      }
    }),
  )
  const now = context.now()
  await showRows(
    context,
    answers.map(({ answer }) => answer),
    {
      things: 'profiles',
      none: 'No profiles.',
      heading: ['PROFILE', 'SERVER', 'AGENT', 'EXPIRES', 'ACTIVE', 'PENDING'],
      cells: (row) =>
        'status' in row
          ? [
              row.profile,
              row.server,
              row.status.name,
              relative(row.status.expires_at ?? 'never', now),
              String(row.status.active_credentials.length),
              String(row.status.pending_requests.length),
            ]
          : [row.profile, row.server, { text: row.error.message, colour: 'red' }, '', '', ''],
    },
  )
  return answers.find(({ exitCode }) => exitCode !== EXIT.done)?.exitCode ?? EXIT.done
}

/** With the login of this profile, at its server, whatever the environment names. */
async function ask(context: Context, profile: string): Promise<AgentStatus> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)])
  const env = { ...context.env, MAYFLY_SERVER: undefined, MAYFLY_PROFILE: undefined }
  const globals = { ...context.globals, profile }
  try {
    const { client } = await openAgentSession({ ...context, env, globals, signal })
    return await client.status()
  } catch (error) {
    if (!signal.aborted || context.signal.aborted) throw error
    throw new CliError('unreachable_timeout', 'It did not answer in time.', { exit: EXIT.unreachable })
  }
}
