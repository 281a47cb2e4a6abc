import type { AgentStatus } from '../../client/wire.ts'
import { CliError, EXIT, type Failure, failureOf, usage } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from './open.ts'
import { lookAtOperator, type OperatorStatus, operatorInWords } from './operator-status.ts'
import { readProfiles } from './profiles.ts'
import { findAgentLogin, notLoggedIn, readTarget } from './session.ts'

/** For one server; it answers at once, or it is not well. */
const PATIENCE_MS = 10_000

/** What the server of a profile says, or why there is no answer. */
type Answer = { readonly profile: string; readonly server: string } & (
  | Status
  | { readonly error: Pick<Failure, 'code' | 'message'> }
)

/** One of both at least. */
interface Status {
  readonly status?: AgentStatus | undefined
  readonly operator?: OperatorStatus | undefined
}

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
        const answer = { profile, server, ...(await ask(context, profile)) }
        const isUseless = answer.status === undefined && answer.operator?.state === 'ended'
        return { answer, exitCode: isUseless ? EXIT.unauthenticated : EXIT.done }
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
      heading: ['PROFILE', 'SERVER', 'AGENT', 'EXPIRES', 'ACTIVE', 'PENDING', 'OPERATOR'],
      cells: (row) =>
        'error' in row
          ? [row.profile, row.server, { text: row.error.message, colour: 'red' }, '', '', '', '']
          : [
              row.profile,
              row.server,
              ...agentCells(row.status, now),
              row.operator === undefined ? '' : operatorInWords(row.operator, now),
            ],
    },
  )
  return answers.find(({ exitCode }) => exitCode !== EXIT.done)?.exitCode ?? EXIT.done
}

function agentCells(status: AgentStatus | undefined, now: number): string[] {
  if (status === undefined) return ['', '', '', '']
  return [
    status.name,
    relative(status.expires_at ?? 'never', now),
    String(status.active_credentials.length),
    String(status.pending_requests.length),
  ]
}

/** With the logins of this profile, at its server, whatever the environment names. */
async function ask(context: Context, profile: string): Promise<Status> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)])
  const env = { ...context.env, MAYFLY_SERVER: undefined, MAYFLY_PROFILE: undefined }
  const globals = { ...context.globals, profile }
  try {
    const bounded = { ...context, env, globals, signal }
    const target = await readTarget(bounded)
    const operator = await lookAtOperator(bounded, target)
    const login = await findAgentLogin(bounded, target)
    if (login === undefined && operator === undefined) throw notLoggedIn(target)
    const status = login && (await (await clientFor(bounded, target, login.auth)).status())
    return { status, operator }
  } catch (error) {
    if (!signal.aborted || context.signal.aborted) throw error
    throw new CliError('unreachable_timeout', 'It did not answer in time.', { exit: EXIT.unreachable })
  }
}
