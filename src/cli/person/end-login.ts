import { MayflyError } from '../../client/client.ts'
import { failureOf } from '../frame/failure.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { askInTime } from '../session/ask-in-time.ts'
import { nameOf } from '../session/profiles.ts'
import { findStoredOperator, type Target } from '../session/session.ts'

/** Ends a session at the server, unless it has ended. Throws what the client throws. */
export async function endSession(
  context: Context,
  target: Target,
  token: string,
  session: string,
): Promise<void> {
  try {
    await askInTime(context, target, token, ({ admin }) => admin.sessions.end(session))
  } catch (error) {
    if (!(error instanceof MayflyError) || ![401, 404].includes(error.status)) throw error
  }
}

/** What ends the operator's login that is stored now, also once another has taken its place. */
export async function endOperator(context: Context, target: Target): Promise<() => Promise<void>> {
  const { operator } = target.profile ?? {}
  if (operator === undefined || Date.parse(operator.expires) <= context.now()) return async () => {}
  const token = await findStoredOperator(context, target).catch(() => undefined)
  if (token === undefined) return () => Promise.reject(new Error('The stored login cannot be read.'))
  return () => endSession(context, target, token, operator.session)
}

/** Ends it, or says that it goes on. Returns whether it has ended at the server. */
export async function endOrSay(context: Context, target: Target): Promise<boolean> {
  const { operator } = target.profile ?? {}
  if (operator === undefined) return true
  try {
    await (await endOperator(context, target))()
    return true
  } catch (error) {
    context.signal.throwIfAborted()
    context.out.note(
      `${failureOf(error).message} The login of ${nameOf(operator)} was removed here, and is valid at the server until it expires ${relative(operator.expires, context.now())}: end the session ${operator.session} in the console.`,
    )
    return false
  }
}
