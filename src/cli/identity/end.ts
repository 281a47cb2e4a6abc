import { MayflyError } from '../../client/errors.ts'
import { failureOf } from '../frame/failure.ts'
import { relative } from '../frame/times.ts'
import type { Context } from '../frame/verb.ts'
import { askInTime } from '../session/ask-in-time.ts'
import { dropCached, identityOf } from '../session/credential-cache.ts'
import { removeFile } from '../session/private-file.ts'
import type { Target } from '../session/session.ts'
import type { IdentityAuth } from './auth.ts'
import { expiryOf } from './kept.ts'

/**
 * Ends the login of this job, at the server and here. Returns whether it has ended at the server, and says if not. Requests
 * no new token for that: a login whose token has expired has nothing left to end.
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
  try {
    await askInTime(context, target, token, async (client) => {
      // The agent may have other logins, and goes on with them.
      const cached = await dropCached(context, (_, identity) => identity === identityOf(target, auth))
      await Promise.allSettled(cached.map(({ id }) => client.revoke(id)))
      await client.logOut()
    })
    return undefined
  } catch (error) {
    context.signal.throwIfAborted()
    return error instanceof MayflyError && error.status === 401 ? undefined : error
  }
}
