import { MayflyError } from '../../client/errors.ts'
import { CliError, EXIT, failureOf } from '../frame/failure.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { dropCached, identityOf } from '../session/credential-cache.ts'
import { clientFor } from '../session/open.ts'
import { removeFile } from '../session/private-file.ts'
import type { Target } from '../session/session.ts'
import type { IdentityAuth } from './auth.ts'
import { expiryOf } from './kept.ts'

/** The login is removed from this machine all the same. */
const PATIENCE_MS = 10_000

/**
 * Ends the login of this job, at the server and here. Returns whether it has ended at the server, and says if not. Gets no
 * token for that: one that is over has nothing left to end.
 */
export async function endIdentity(context: Context, target: Target, auth: IdentityAuth): Promise<boolean> {
  const kept = await auth.tokens.load()
  const live = kept !== undefined && kept.expiresAt > context.now() ? kept : undefined
  const failure = live && (await endAtServer(context, target, auth, live.token))
  if (failure !== undefined && live !== undefined) {
    const expires = relative(expiryOf(live) ?? 'never', context.now())
    context.out.note(
      `${failureOf(failure).message} The login was removed here, and is valid at the server until it expires ${expires}.`,
    )
  }
  await removeFile(auth.file)
  return failure === undefined
}

/** Resolves with what went wrong. Rejects if the command is interrupted. */
async function endAtServer(
  context: Context,
  target: Target,
  auth: IdentityAuth,
  token: string,
): Promise<unknown> {
  const late = new CliError('unreachable_timeout', 'The server did not answer in time.', {
    exit: EXIT.unreachable,
  })
  const stop = new AbortController()
  const timer = setTimeout(() => stop.abort(late), PATIENCE_MS)
  const signal = AbortSignal.any([context.signal, stop.signal])
  try {
    const client = await clientFor({ ...context, signal }, target, { kind: 'bearer', token })
    // The agent may have other logins, and goes on with them.
    const cached = await dropCached(context, (_, identity) => identity === identityOf(target, auth))
    await Promise.allSettled(cached.map(({ id }) => client.revoke(id)))
    await client.logOut()
    return undefined
  } catch (error) {
    context.signal.throwIfAborted()
    return error instanceof MayflyError && error.status === 401 ? undefined : error
  } finally {
    clearTimeout(timer)
  }
}
