import { IdentityRefused } from '../domain/identity/identity.ts'
import { HOUR_MS, MINUTE_MS } from '../domain/limits.ts'
import { type ForeignJws, isSignedBy } from '../keys/foreign-jws.ts'
import { chooseKey, type UsableKey } from './key-set.ts'

/** How long the keys of an issuer are used, and how much longer while it is away. */
export const FRESH_MS = HOUR_MS
export const STALE_MS = HOUR_MS
/** After which an unknown key may make the keys be fetched again. */
export const UNKNOWN_KEY_MS = MINUTE_MS

/** The keys of one issuer. */
export interface Issuer {
  /** Throws `IdentityRefused`: `unknown_key`, `signature` or `keys_unavailable`. */
  requireSignature(token: string, jws: ForeignJws): Promise<void>
  /** It has shown keys at some time. */
  hasKeys(): boolean
}

interface IssuerParts {
  /** Throws; the message is for the audit and the log. */
  readonly fetchKeys: () => Promise<readonly UsableKey[]>
  readonly onFailure: (detail: string) => void
  /** How long an issuer that failed is left alone. */
  readonly pauseMs: number
  /** Epoch ms. */
  readonly now: () => number
}

/** Keys that the configuration has. */
export function fixedIssuer(keys: readonly UsableKey[]): Issuer {
  return {
    hasKeys: () => true,
    requireSignature: async (token, jws) => {
      const key = chooseKey(keys, jws)
      if (key === undefined) throw new IdentityRefused('unknown_key')
      if (!(await isSignedBy(token, jws, key.jwk))) throw new IdentityRefused('signature')
    },
  }
}

/** Keys that are fetched when a token needs them: once for all who wait. */
export function fetchingIssuer(parts: IssuerParts): Issuer {
  const keys = createCache(parts)
  return {
    hasKeys: keys.hasAny,
    requireSignature: async (token, jws) => {
      const key = chooseKey(await keys.get(), jws)
      if (key !== undefined && (await isSignedBy(token, jws, key.jwk))) return
      // A token that names its key was not signed by it. Without a name, the only key may have been replaced.
      if (key !== undefined && jws.kid !== undefined) throw new IdentityRefused('signature')
      const renewed = chooseKey((await keys.renewed()) ?? [], jws)
      if (renewed !== undefined && (await isSignedBy(token, jws, renewed.jwk))) return
      throw new IdentityRefused((renewed ?? key) === undefined ? 'unknown_key' : 'signature')
    },
  }
}

interface Cache {
  /** Throws `keys_unavailable`. */
  get(): Promise<readonly UsableKey[]>
  /** Fetched now, because a key is unknown; `undefined` where it is too early for that, or the issuer fails. */
  renewed(): Promise<readonly UsableKey[] | undefined>
  hasAny(): boolean
}

function createCache({ fetchKeys, onFailure, pauseMs, now }: IssuerParts): Cache {
  let known: { readonly keys: readonly UsableKey[]; readonly at: number } | undefined
  let failed: { readonly detail: string; readonly until: number } | undefined
  let fetching: Promise<void> | undefined
  let askedForUnknown = Number.NEGATIVE_INFINITY

  const fetchOnce = async () => {
    try {
      known = { keys: await fetchKeys(), at: now() }
      failed = undefined
    } catch (error) {
      const detail = error instanceof Error ? error.message : 'unknown'
      failed = { detail, until: now() + pauseMs }
      onFailure(detail)
    } finally {
      fetching = undefined
    }
  }
  const fetchShared = () => {
    fetching ??= fetchOnce()
    return fetching
  }
  const keysNotOlderThan = (ms: number) =>
    known !== undefined && now() < known.at + ms ? known.keys : undefined
  const usable = () => {
    const keys = keysNotOlderThan(FRESH_MS + STALE_MS)
    if (keys === undefined) throw new IdentityRefused('keys_unavailable', [], failed?.detail)
    return keys
  }
  return {
    hasAny: () => known !== undefined,
    get: async () => {
      const fresh = keysNotOlderThan(FRESH_MS)
      if (fresh !== undefined) return fresh
      if (failed !== undefined && now() < failed.until) return usable()
      // Nobody waits for an issuer that is known to be away, while its keys go on.
      const isAway = failed !== undefined && keysNotOlderThan(FRESH_MS + STALE_MS) !== undefined
      const answer = fetchShared()
      if (!isAway) await answer
      return usable()
    },
    renewed: async () => {
      if (now() < askedForUnknown + UNKNOWN_KEY_MS) {
        // Those who ask while the answer is on its way have it, too.
        await fetching
        return keysNotOlderThan(UNKNOWN_KEY_MS)
      }
      askedForUnknown = now()
      await fetchShared()
      return failed === undefined ? known?.keys : undefined
    },
  }
}
