import { MayflyError } from '../../client/errors.ts'
import type { IssueRequest } from '../../client/wire.ts'
import type { Context } from '../frame/verb.ts'
import { cachedCredential, dropCached, peekCached } from '../session/credential-cache.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Session } from '../session/open.ts'

const MINUTE_MS = 60_000

/** How long before its end each tool renews a credential, at most a quarter of its life. */
export const RENEW_BEFORE_MS = {
  /** botocore renews a quarter of an hour ahead, the SDK for JavaScript five minutes. */
  aws: 15 * MINUTE_MS,
  gcp: 5 * MINUTE_MS,
  /** Claude Code keeps a key for five minutes. */
  apiKey: 5 * MINUTE_MS,
  git: MINUTE_MS,
  /** Read at the start of a command that may run for a while. */
  command: 2 * MINUTE_MS,
} as const

const ASK_MS = 3_000

/**
 * Answers with the cached credential or a new one. A cached credential that has ended is not answered again: the tool
 * asks because it was refused. While the server is unreachable, the cached one counts as good. If `toAnswer` throws,
 * the credential is useless to the tool and revoked.
 */
export async function heldAnswer<T>(
  context: Context,
  session: Session,
  request: IssueRequest,
  minRemainingMs: number,
  toAnswer: (credential: HeldCredential) => T,
): Promise<T> {
  const hasEnded = (id: string) => isEnded(context, session, id)
  const held = await cachedCredential(session, context, request, { minRemainingMs, hasEnded })
  try {
    return toAnswer(held)
  } catch (error) {
    // Report the first error.
    await end(context, session, held).catch(() => {})
    throw error
  }
}

/** Drops the cached credential, if there is one, and revokes it. */
export async function endHeld(context: Context, session: Session, request: IssueRequest): Promise<void> {
  const known = await peekCached(session, context, request)
  if (known !== undefined) await end(context, session, known)
}

/** Revokes it even if it is not in the cache, which is not writable everywhere. */
async function end(context: Context, session: Session, { id, expires_at }: HeldCredential): Promise<void> {
  await dropCached(context, (one) => one.id === id)
  if (Date.parse(expires_at) > context.now()) await session.client.revoke(id)
}

async function isEnded(context: Context, { client }: Session, id: string): Promise<boolean> {
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(ASK_MS)])
    return (await client.credential(id, { signal })).status !== 'active'
  } catch (error) {
    context.signal.throwIfAborted()
    // The agent or the credential is gone; requesting another one tells which.
    return error instanceof MayflyError && [401, 403, 404].includes(error.status)
  }
}

/** RFC 3339 in whole seconds, rounded down, as AWS and Kubernetes write it. */
export function toTimestamp(ms: number): string {
  return new Date(Math.floor(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
