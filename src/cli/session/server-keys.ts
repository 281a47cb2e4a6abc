import { type Client, createClient, MayflyError } from '../../client/client.ts'
import type { Transport, TransportReply, TransportRequest } from '../../client/transport.ts'
import { globalFlags } from '../frame/global-flags.ts'
import type { Context } from '../frame/verb.ts'
import type { ServerAddress } from './server-address.ts'
import type { Target } from './session.ts'

/** A server names its keys by their RFC 7638 thumbprints (docs/explanation/decisions.md §6.3). */
const THUMBPRINT = /^[\w-]{43}$/
/** Two, while the keys are rotated; a file of profiles must not grow by what a server says. */
const MAX_KEYS = 16
const TIMEOUT_MS = 10_000

/** What a server says about itself. */
export interface ServerSaysSo {
  readonly issuer: string | undefined
  /** Its published keys. */
  readonly keys: readonly PublishedKey[]
}

/** A key of a JWKS, not checked beyond its name. */
interface PublishedKey {
  readonly kid: string
  readonly [member: string]: unknown
}

/** The thumbprints of the keys that the server publishes; none if it publishes no keys. Throws `UnreachableError`. */
export async function readServerKeys(
  context: Pick<Context, 'signal' | 'now'>,
  server: ServerAddress,
  transport: Transport,
): Promise<string[]> {
  return namesOf(await readKeys(clientOf(context, server, transport)))
}

/** Undefined if it is no server of ours. Throws `UnreachableError`. */
export async function readServer(
  context: Pick<Context, 'signal' | 'now'>,
  server: ServerAddress,
  transport: Transport,
): Promise<ServerSaysSo | undefined> {
  const client = clientOf(context, server, transport)
  const issuer = await unlessRefused(async () => readIssuer((await client.discovery()).issuer))
  return issuer === undefined ? undefined : { issuer, keys: await readKeys(client) }
}

function clientOf(
  { signal, now }: Pick<Context, 'signal' | 'now'>,
  { url }: ServerAddress,
  transport: Transport,
) {
  const auth = { kind: 'none' } as const
  return createClient({ server: url, auth, transport, retries: 2, timeoutMs: TIMEOUT_MS, signal, now })
}

async function readKeys(client: Client): Promise<PublishedKey[]> {
  const reply = await unlessRefused(() =>
    client.call<unknown>({ method: 'GET', path: '/.well-known/jwks.json' }),
  )
  const { keys } = (reply?.body ?? {}) as { keys?: unknown }
  return Array.isArray(keys) ? keys.filter(isPublishedKey).slice(0, MAX_KEYS) : []
}

async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof MayflyError) return undefined
    throw error
  }
}

/** An issuer from a reply, in plain characters: it goes into messages and command lines. */
export function readIssuer(said: unknown): string | undefined {
  const isPlain =
    typeof said === 'string' && /^https?:\/\/[\w.:[\]~/-]{1,500}$/.test(said) && URL.canParse(said)
  return isPlain ? said.replace(/\/+$/, '') : undefined
}

export const namesOf = (keys: readonly PublishedKey[]) => keys.map(({ kid }) => kid)

const nameOf = (key: unknown) => (key as { kid?: unknown } | null)?.kid
const isPublishedKey = (key: unknown): key is PublishedKey => isThumbprint(nameOf(key))
const isThumbprint = (name: unknown): name is string => typeof name === 'string' && THUMBPRINT.test(name)

/**
 * Warns once if the server at this address publishes none of the keys that it had at the login: another server may have
 * answered. It asks for the keys only when there is a reason, which is a refused login or an access token by an unknown
 * key. Keys are rotated one after the other, so a set that overlaps replaces the remembered one.
 */
export function watchServerKeys(context: Context, target: Target, transport: Transport): Transport {
  let known = target.profile?.server_keys
  return async (request) => {
    const reply = await transport(request)
    if (known === undefined || !isSuspicious(request, reply, known)) return reply
    const remembered = known
    known = undefined
    const published = await readServerKeys(context, target.server, transport).catch(() => undefined)
    if (published === undefined) return reply
    if (published.some((key) => remembered.includes(key))) {
      known = published
      await rememberServerKeys(context, target, published)
    } else warn(context, target)
    return reply
  }
}

function isSuspicious(request: TransportRequest, reply: TransportReply, known: readonly string[]): boolean {
  if (reply.status === 401) return true
  return (
    reply.status === 200 &&
    request.url.endsWith('/oauth/token') &&
    !known.includes(String(nameOf(tokenIn(reply)?.header)))
  )
}

/** The access token in a reply of the token endpoint, of which nothing is verified. Undefined if there is none. */
export function tokenIn({ text }: Pick<TransportReply, 'text'>) {
  try {
    const { access_token } = JSON.parse(text) as { access_token?: unknown }
    const [head = '', body = '', signature = ''] = String(access_token).split('.')
    const [header, claims] = [head, body].map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
    return { header, claims, signed: `${head}.${body}`, signature }
  } catch {
    return undefined
  }
}

function warn({ out, globals }: Context, { server, profile }: Target): void {
  const again = profile?.login === 'private_key_jwt' ? 'mayfly enroll' : 'mayfly login'
  out.note(
    `mayfly: warning: ${server.text} has none of the keys that it had at your login, so another server may be answering there. Check the address. If an administrator rotated the keys, run \`${again}${globalFlags(globals)}\` again.`,
  )
}

/**
 * Remembers these keys with the login, unless there are none or the file cannot be changed now. Returns whether they
 * replace others.
 */
export async function rememberServerKeys(
  context: Context,
  { profileName, server }: Target,
  keys: readonly string[],
): Promise<boolean> {
  if (keys.length === 0) return false
  const [{ tryLock }, { profilesPath, readProfiles, writeProfiles }] = await Promise.all([
    import('./file-lock.ts'),
    import('./profiles.ts'),
  ])
  const release = await tryLock(`${profilesPath(context)}.lock`).catch(() => undefined)
  if (release === undefined) return false
  try {
    const known = await readProfiles(context)
    const profile = known.profiles[profileName]
    if (profile?.server !== server.text || profile.server_keys?.join() === keys.join()) return false
    const profiles = { ...known.profiles, [profileName]: { ...profile, server_keys: keys } }
    await writeProfiles(context, { ...known, profiles })
    return profile.server_keys !== undefined
  } catch {
    // For instance on a full disk: the next change of keys is noticed all the same.
    return false
  } finally {
    release()
  }
}

/** Whether a reply of the token endpoint holds an access token for this issuer, signed by a published key of these names. */
export async function isSignedBy(
  reply: TransportReply,
  { issuer, keys }: ServerSaysSo,
  names: readonly string[],
): Promise<boolean> {
  const token = tokenIn(reply)
  if (token === undefined) return false
  try {
    const { kid, alg } = token.header
    const published = keys.find((key) => key.kid === kid)
    const [n, e] = [published?.['n'], published?.['e']]
    if (alg !== 'RS256' || !names.includes(kid) || typeof n !== 'string' || typeof e !== 'string')
      return false
    // The name of a key is only a claim until it is computed (RFC 7638).
    const named = new TextEncoder().encode(JSON.stringify({ e, kty: 'RSA', n }))
    const name = Buffer.from(await crypto.subtle.digest('SHA-256', named)).toString('base64url')
    const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
    const key = await crypto.subtle.importKey('jwk', { kty: 'RSA', n, e }, algorithm, false, ['verify'])
    const signature = Buffer.from(token.signature, 'base64url')
    const signed = new TextEncoder().encode(token.signed)
    const isValid = await crypto.subtle.verify(algorithm, key, signature, signed)
    return isValid && name === kid && token.claims.iss === issuer
  } catch {
    return false
  }
}
