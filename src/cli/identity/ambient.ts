import type { Context } from '../frame/verb.ts'
import type { Target } from '../session/session.ts'
import type { IdentityAuth } from './auth.ts'
import { authFor, findKept } from './kept.ts'
import { NEAR } from './sources.ts'

/**
 * The identity to use where nobody has said which: that of an earlier login of this job, else what variables and files say
 * is here. It asks nobody, and no cloud is tried. Throws `CliError` if the source cannot be read.
 */
export async function ambientAuth(context: Context, target: Target): Promise<IdentityAuth | undefined> {
  const server = target.server.text
  const kept = await findKept(context, server)
  if (kept !== undefined) return kept
  const audience = audienceOf(target)
  const source = audience === undefined ? undefined : NEAR.find((one) => one.isHere(context))
  return source && authFor(context, server, source, audience ?? '')
}

/**
 * Whom tokens are for: the address that the user has configured. Never what a server says of itself: a hostile one would
 * name another, and log in there with our token. Undefined for a default and a socket, which are no such address.
 */
export function audienceOf({ server, serverFrom }: Target): string | undefined {
  return serverFrom === 'default' || server.socketPath !== undefined ? undefined : server.text
}
