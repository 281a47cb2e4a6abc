import { MayflyError } from '../../client/errors.ts'
import type { IssuedCredential, IssueRequest } from '../../client/wire.ts'
import type { Context } from '../frame/verb.ts'
import { cachedCredential, dropCached, peekCached } from '../session/credential-cache.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import type { Session } from '../session/open.ts'

const MINUTE_MS = 60_000

/** How long before its end each tool wants another, at most a quarter of its life. */
export const RENEW_BEFORE_MS = {
  /** botocore renews a quarter of an hour ahead, the SDK for JavaScript five minutes. */
  aws: 15 * MINUTE_MS,
  gcp: 5 * MINUTE_MS,
  /** It holds on to a key for five minutes. */
  apiKey: 5 * MINUTE_MS,
  /** Read at the start of a command that may take a while. */
  command: 2 * MINUTE_MS,
} as const

const ASK_MS = 3_000

/**
 * What `toAnswer` makes of the credential of the cache, or of a new one. One that the server says has ended is
 * never given out again: these tools ask anew when they were refused. While the server cannot be asked, the cached
 * one is good. One that is of no use to the tool is revoked, and the error of `toAnswer` thrown.
 */
export async function heldAnswer<T>(
  context: Context,
  session: Session,
  request: IssueRequest,
  minRemainingMs: number,
  toAnswer: (credential: HeldCredential) => T,
): Promise<T> {
  const known = await peekCached(session, context, request)
  const isGood =
    known !== undefined &&
    isFresh(known, context.now(), minRemainingMs) &&
    !(await hasEnded(context, session, known.id))
  const held = isGood ? known : await cachedCredential(session, context, request, { refresh: true })
  try {
    return toAnswer(held)
  } catch (error) {
    // The first thing that went wrong is what is told.
    await end(context, session, held).catch(() => {})
    throw error
  }
}

/** Whether it is not yet time for another one. */
export function isFresh(credential: IssuedCredential, now: number, minRemainingMs: number): boolean {
  const end = endOf(credential)
  const life = end - Date.parse(credential.created_at)
  return end - now > Math.min(minRemainingMs, life / 4)
}

/** Takes it out of the cache and revokes it; nothing happens where there is none. */
export async function endHeld(context: Context, session: Session, request: IssueRequest): Promise<void> {
  const known = await peekCached(session, context, request)
  if (known !== undefined) await end(context, session, known)
}

/** Whether or not it is in the cache: that cannot be written everywhere. */
async function end(context: Context, session: Session, { id, expires_at }: HeldCredential): Promise<void> {
  await dropCached(context, (one) => one.id === id)
  if (Date.parse(expires_at) > context.now()) await session.client.revoke(id)
}

async function hasEnded(context: Context, { client }: Session, id: string): Promise<boolean> {
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(ASK_MS)])
    return (await client.credential(id, { signal })).status !== 'active'
  } catch (error) {
    context.signal.throwIfAborted()
    // The agent or the credential is gone; asking for another says which.
    return error instanceof MayflyError && [401, 403, 404].includes(error.status)
  }
}

/** Epoch ms at which it ends, whoever ends it first. */
export function endOf({ expires_at, upstream_expires_at }: IssuedCredential): number {
  const end = Date.parse(expires_at)
  return upstream_expires_at === undefined ? end : Math.min(end, Date.parse(upstream_expires_at))
}

/** RFC 3339 in whole seconds, as AWS and Kubernetes write it; rounded down. */
export function toTimestamp(ms: number): string {
  return new Date(Math.floor(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
