import { readdir } from 'node:fs/promises'
import type { IssueRequest } from '../../client/wire.ts'
import { canonicalJson } from '../../domain/formats/canonical-json.ts'
import { absoluteScope, coversAny } from '../../domain/scope.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import { waitForLock } from './file-lock.ts'
import { type HeldCredential, isFresh, requireToken } from './held-credential.ts'
import type { Session } from './open.ts'
import { cachePath } from './paths.ts'
import { readPrivateFile, removeFile, writePrivateFile } from './private-file.ts'
import type { Target } from './session.ts'
import { cacheOf, digest } from './token-cache.ts'

export interface CacheOptions {
  /** Reuse a credential only if it lives this long; a minute by default, at most a quarter of its life. */
  readonly minRemainingMs?: number
  /** Whether a cached credential is of no more use. */
  hasEnded?(id: string): Promise<boolean>
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
  const { minRemainingMs = 60_000, hasEnded = async () => false } = options
  const fresh = async () => {
    const entry = await readEntry(path)
    if (entry === undefined || !isFresh(entry.credential, context.now(), minRemainingMs)) return undefined
    return (await isCovering(session, context, request, entry)) ? entry.credential : undefined
  }
  const known = await fresh()
  if (known !== undefined && !(await hasEnded(known.id))) return known
  // Simultaneous requests wait and share one credential. A second one would not be in the cache, to be revoked.
  const release = await waitForLock(`${path}.lock`, context.signal)
  try {
    const theirs = await fresh()
    if (theirs !== undefined && theirs.id !== known?.id) return theirs
    const issued = requireToken(await session.client.issue(request))
    // A failed write only costs a new credential next time.
    const held = await loginScopes(session, context)
    await writePrivateFile(path, JSON.stringify({ identity, credential: issued, held })).catch(() => {})
    return issued
  } finally {
    release?.()
  }
}

/**
 * A request that names no scopes means those of the agent, which may have changed since: while requests for more are
 * undecided, the client asks for them, and logs in again once one is decided.
 */
async function isCovering(
  session: Session,
  context: Context,
  { backend, scopes }: IssueRequest,
  { credential, held }: CacheEntry,
): Promise<boolean> {
  if (scopes !== undefined) {
    const granted = credential.scopes.map((scope) => absoluteScope(backend, scope))
    return scopes.every((scope) =>
      [absoluteScope(backend, scope), `${backend}:${scope}`].some((one) => coversAny(granted, one)),
    )
  }
  if (held === undefined) return true
  await settleRequests(session, context)
  const now = await loginScopes(session, context)
  return now === undefined || now === held
}

async function settleRequests({ client, target, login }: Session, context: Context): Promise<void> {
  const token = await cacheOf(context, target.server.text, login?.auth ?? { kind: 'none' })?.load()
  if (token?.requests === undefined) return
  // Without the server, what is cached counts as good.
  await client.status().catch(() => context.signal.throwIfAborted())
}

/** The scopes of the login that is kept, as text; undefined for a login that keeps none. */
async function loginScopes({ target, login }: Session, context: Context): Promise<string | undefined> {
  return (await cacheOf(context, target.server.text, login?.auth ?? { kind: 'none' })?.load())?.scope
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
  /** The scopes of the login when it was issued. */
  readonly held?: string
}

async function readEntry(path: string): Promise<CacheEntry | undefined> {
  try {
    const text = await readPrivateFile(path)
    const entry = text === undefined ? undefined : (JSON.parse(text) as CacheEntry)
    const { token, expires_at } = entry?.credential ?? {}
    const isWhole = typeof token === 'string' && typeof expires_at === 'string'
    return isWhole && Array.isArray(entry?.credential.scopes) ? entry : undefined
  } catch {
    return undefined
  }
}

/** Identifies a login at a server. Two logins never share a credential. */
export function identityOf({ server }: Pick<Target, 'server'>, auth: LoginAuth): string {
  switch (auth.kind) {
    case 'bearer':
      return digest(server.text, auth.kind, auth.token)
    case 'client_secret':
    case 'private_key_jwt':
      return digest(server.text, auth.kind, auth.clientId)
    case 'identity':
      return digest(server.text, auth.kind, auth.key, auth.audience)
    case 'none':
      return digest(server.text, auth.kind)
  }
}
