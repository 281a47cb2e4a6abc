import { readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { AccessToken, TokenCache } from '../../client/access-tokens.ts'
import { parseJson } from '../../domain/formats/json.ts'
import type { Context } from '../frame/verb.ts'
import { cachePath } from '../session/paths.ts'
import { readPrivateFile, removeFile, writePrivateFile } from '../session/private-file.ts'
import { digest, readToken } from '../session/token-cache.ts'
import type { IdentityAuth } from './auth.ts'
import { FILE } from './file.ts'
import type { IdentitySource } from './source.ts'
import { SOURCES, sourceOf } from './sources.ts'
import { checkToken } from './token.ts'

/** What a login leaves for the later commands of its job, beside its access token. */
interface Kept {
  readonly source: string
  readonly audience: string
  readonly key: string
}

/** Jobs do not live longer. What an ended one left is removed at the next login of this user. */
const KEPT_MS = 7 * 24 * 3_600_000

/** A login at this server with tokens of this source for this audience. Throws `CliError` if the source cannot say whose they are. */
export function authFor(
  context: Context,
  server: string,
  source: IdentitySource,
  audience: string,
  key = keyOf(context, server, source),
): IdentityAuth {
  const { name, title } = source
  const file = fileOf(context, server, name, key)
  return {
    kind: 'identity',
    token: async (options) => checkToken(title, await source.token(context, audience, options), audience),
    source: name,
    title,
    audience,
    key,
    file,
    tokens: tokensIn(context, file, { source: name, audience, key }),
  }
}

/** The login that an earlier command of this job has kept for this server, unless it is in the file `except`. */
export async function findKept(
  context: Context,
  server: string,
  except?: string,
): Promise<IdentityAuth | undefined> {
  for (const source of [await keptFile(context, server), ...SOURCES]) {
    const auth = source && (await readKept(context, server, source).catch(() => undefined))
    if (auth !== undefined && auth.file !== except) return auth
  }
  return undefined
}

async function readKept(
  context: Context,
  server: string,
  source: IdentitySource,
): Promise<IdentityAuth | undefined> {
  const key = keyOf(context, server, source)
  const kept = factsIn(await readPrivateFile(fileOf(context, server, source.name, key)))
  return kept?.key === key ? authFor(context, server, source, kept.audience, key) : undefined
}

const keyOf = (context: Context, server: string, source: IdentitySource) =>
  digest(server, source.name, source.workload(context))

/** Only the login that is kept knows the path of a token that a person named. */
async function keptFile(context: Context, server: string): Promise<IdentitySource | undefined> {
  const text = await readPrivateFile(fileOf(context, server, FILE, '')).catch(() => undefined)
  const kept = factsIn(text)
  return kept?.source.startsWith(FILE) === true ? sourceOf(context, kept.source) : undefined
}

/** Jobs that run side by side have a file each. Tokens from a file that a person named share one per server. */
function fileOf(context: Context, server: string, name: string, key: string): string {
  const which = name.startsWith(FILE) ? digest(server, FILE) : key
  return cachePath(context, 'identities', `${which}.json`)
}

function factsIn(text = ''): Kept | undefined {
  const facts = parseJson(text) as Partial<Kept> | null | undefined
  const { source, audience, key } = facts ?? {}
  const isWhole = [source, audience, key].every((one) => typeof one === 'string')
  return isWhole ? (facts as Kept) : undefined
}

/** As the caches of other logins, but the process remembers a token that it cannot write: the source may not give another. */
function tokensIn({ now }: Pick<Context, 'now'>, file: string, facts: Kept): TokenCache {
  let own: AccessToken | undefined
  const load = async () => {
    const text = await readPrivateFile(file)
    return text !== undefined && factsIn(text)?.key === facts.key ? readToken(text) : undefined
  }
  return {
    load: async () => {
      const stored = await load().catch(() => undefined)
      return own !== undefined && !(stored !== undefined && stored.expiresAt >= own.expiresAt) ? own : stored
    },
    save: async (token) => {
      own = token
      try {
        await writePrivateFile(file, JSON.stringify({ ...facts, ...token }))
        if (token !== undefined) removeOld(dirname(file), now() - KEPT_MS)
      } catch {
        // For instance on a full disk, or without a home directory.
      }
    },
  }
}

function removeOld(directory: string, before: number): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    if (statSync(path).mtimeMs < before) rmSync(path, { force: true })
  }
}

/** Forgets the other logins of this job at this server: one takes the place of all. */
export async function forgetOthers(context: Context, server: string, { file }: IdentityAuth): Promise<void> {
  for (let kept = await findKept(context, server, file); kept; kept = await findKept(context, server, file))
    await removeFile(kept.file)
}

/** When it ends, RFC 3339; undefined for a time that a server has made up. */
export function expiryOf({ expiresAt }: AccessToken): string | undefined {
  return Math.abs(expiresAt) <= MAX_TIME ? new Date(expiresAt).toISOString() : undefined
}

/** ECMA-262, "Time Values": epoch ms. */
const MAX_TIME = 8.64e15
