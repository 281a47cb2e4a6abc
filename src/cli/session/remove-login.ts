import type { Context } from '../frame/verb.ts'
import { endOrSay } from '../person/end-login.ts'
import { dropCached, identityOf } from './credential-cache.ts'
import { forgetLogin } from './keep-login.ts'
import { clientFor } from './open.ts'
import { findStoredLogin, type Target } from './session.ts'
import { cacheOf } from './token-cache.ts'

/**
 * Removes the logins of a profile from this machine, revokes the credentials that were cached with the agent's, and ends the
 * operator's. Returns whether that has ended at the server.
 */
export async function removeLogin(context: Context, target: Target): Promise<boolean> {
  await endCached(context, target)
  const hasEnded = await endOrSay(context, target)
  await forgetLogin(context, target.profileName)
  return hasEnded
}

/** Revokes the cached credentials of this login, as far as the server can be reached. */
async function endCached(context: Context, target: Target): Promise<void> {
  // A secret that cannot be read can still be removed.
  const login = await findStoredLogin(context, target).catch(() => undefined)
  if (login === undefined) return
  const dropped = await dropCached(context, (_, identity) => identity === identityOf(target, login.auth))
  if (dropped.length > 0) {
    const client = await clientFor(context, target, login.auth)
    const ends = await Promise.allSettled(dropped.map(({ id }) => client.revoke(id)))
    const left = ends.filter(({ status }) => status === 'rejected').length
    if (left > 0)
      context.out.note(
        `${left} cached credentials could not be revoked; they remain valid until they expire.`,
      )
  }
  await cacheOf(context, target.server.text, login.auth)?.save(undefined)
}
