import { readdir } from 'node:fs/promises'
import type { Auth } from '../../client/log-in.ts'
import type { IssueRequest } from '../../client/wire.ts'
import { canonicalJson } from '../../domain/canonical-json.ts'
import type { Context } from '../frame/verb.ts'
import { waitForLock } from './file-lock.ts'
import { type HeldCredential, isFresh, requireToken } from './held-credential.ts'
import type { Session } from './open.ts'
import { cachePath } from './paths.ts'
import { readPrivateFile, removeFile, writePrivateFile } from './private-file.ts'
import type { Target } from './session.ts'
import { digest } from './token-cache.ts'

export interface CacheOptions {
  /** Reuse a credential only if it lives this long; a minute by default, at most a quarter of its life. */
  readonly minRemainingMs?: number
  /** The id of a cached credential that is of no more use. */
  readonly insteadOf?: string
}

/**
 * For tools that ask often: the credential of an earlier identical request with this login, if it lives long enough,
 * else a new one. Throws like `client.issue`.
 */
export async function cachedCredential(
  session: Session,
  context: Context,
  request: IssueRequest,
  options: CacheOptions = {},
): Promise<HeldCredential> {
  const { identity, path } = placeOf(session, context, request)
  const { minRemainingMs = 60_000, insteadOf } = options
  const fresh = async () => {
    const known = (await readEntry(path))?.credential
    if (known === undefined || known.id === insteadOf) return undefined
    return isFresh(known, context.now(), minRemainingMs) ? known : undefined
  }
  const known = await fresh()
  if (known !== undefined) return known
  // Simultaneous requests wait and share one credential. A second one would not be in the cache, to be revoked.
  const release = await waitForLock(`${path}.lock`, context.signal)
  try {
    const theirs = await fresh()
    if (theirs !== undefined) return theirs
    const issued = requireToken(await session.client.issue(request))
    // A failed write only costs a new credential next time.
    await writePrivateFile(path, JSON.stringify({ identity, credential: issued })).catch(() => {})
    return issued
  } finally {
    release?.()
  }
}

/** The cached credential of this request, even if it has expired. */
export async function peekCached(
  session: Session,
  context: Context,
  request: IssueRequest,
): Promise<HeldCredential | undefined> {
  return (await readEntry(placeOf(session, context, request).path))?.credential
}

/** Removes matching credentials of any server and login from the cache, and returns them for the caller to revoke. */
export async function dropCached(
  context: Context,
  matches: (credential: HeldCredential, identity: string) => boolean,
): Promise<HeldCredential[]> {
  const names = await readdir(cachePath(context, 'credentials')).catch(() => [])
  const dropped: HeldCredential[] = []
  for (const name of names.filter((one) => one.endsWith('.json'))) {
    const path = entryPath(context, name.slice(0, -'.json'.length))
    const known = await readEntry(path)
    if (known === undefined || !matches(known.credential, known.identity)) continue
    await removeFile(path)
    dropped.push(known.credential)
  }
  return dropped
}

function placeOf({ target, login }: Session, context: Context, request: IssueRequest) {
  const identity = identityOf(target, login?.auth ?? { kind: 'none' })
  return { identity, path: entryPath(context, digest(identity, canonicalJson(request))) }
}

const entryPath = (context: Context, key: string) => cachePath(context, 'credentials', `${key}.json`)

interface CacheEntry {
  readonly identity: string
  readonly credential: HeldCredential
}

async function readEntry(path: string): Promise<CacheEntry | undefined> {
  try {
    const text = await readPrivateFile(path)
    const entry = text === undefined ? undefined : (JSON.parse(text) as CacheEntry)
    const { token, expires_at } = entry?.credential ?? {}
    return typeof token === 'string' && typeof expires_at === 'string' ? entry : undefined
  } catch {
    return undefined
  }
}

/** Identifies a login at a server. Two logins never share a credential. */
export function identityOf({ server }: Pick<Target, 'server'>, auth: Auth): string {
  switch (auth.kind) {
    case 'bearer':
      return digest(server.text, auth.kind, auth.token)
    case 'client_secret':
    case 'private_key_jwt':
      return digest(server.text, auth.kind, auth.clientId)
    case 'none':
      return digest(server.text, auth.kind)
  }
}
