import type { AccessToken, TokenCache } from '../../client/access-tokens.ts'
import { parseJson } from '../../domain/formats/json.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import { cachePath } from './paths.ts'
import { readPrivateFile, removeFile, writePrivateFile } from './private-file.ts'

/**
 * The access token that all processes with this login share; undefined for a login that needs none. A new secret has
 * a new cache. A cache that cannot be read or written only costs a login each time.
 */
export function cacheOf(context: Context, server: string, auth: LoginAuth): TokenCache | undefined {
  switch (auth.kind) {
    case 'client_secret':
      return tokenCache(context, [server, auth.clientId, auth.clientSecret])
    case 'private_key_jwt':
      return tokenCache(context, [server, auth.clientId, auth.privateJwk.x])
    case 'identity':
      return auth.tokens
    case 'bearer':
    case 'none':
      return undefined
  }
}

function tokenCache(context: Context, key: readonly string[]): TokenCache {
  const path = cachePath(context, 'tokens', `${digest(...key)}.json`)
  return {
    load: async () => {
      try {
        const text = await readPrivateFile(path)
        return text === undefined ? undefined : readToken(text)
      } catch {
        return undefined
      }
    },
    save: async (token) => {
      try {
        if (token === undefined) await removeFile(path)
        else await writePrivateFile(path, JSON.stringify(token))
      } catch {
        // For instance on a full disk: this process still has the token.
      }
    },
  }
}

/** A file name for these texts. */
export function digest(...parts: readonly string[]): string {
  // Loaded here, because most runs do not need it.
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}

/** The access token in a file of this form; undefined if it holds none. */
export function readToken(text: string): AccessToken | undefined {
  const value = parseJson(text) as Partial<AccessToken> | null | undefined
  if (typeof value?.token !== 'string') return undefined
  const { token, expiresAt, renewAt, scope, requests } = value
  if (typeof expiresAt !== 'number' || typeof renewAt !== 'number') return undefined
  const kept = { token, expiresAt, renewAt, scope: String(scope ?? '') }
  return Array.isArray(requests) ? { ...kept, requests } : kept
}
