import type { Agent } from 'node:https'
import { type Client, createClient } from '../../client/client.ts'
import type { Transport } from '../../client/transport.ts'
import { installation } from '../../installation.ts'
import { CliError } from '../frame/failure.ts'
import { nodeTransport, type TransportOptions } from '../frame/transport.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import { findLogin } from './find-login.ts'
import { connectorOf } from './local-server.ts'
import type { ServerSaysSo } from './server-keys.ts'
import { type Login, notLoggedIn, readTarget, type Target } from './session.ts'
import { cacheOf } from './token-cache.ts'

export interface Session {
  readonly client: Client
  readonly target: Target
  /** Undefined for a client without a login. */
  readonly login: Login | undefined
}

/** Opens a session with the agent's login. Throws `CliError` with exit code 4 if there is none. */
export async function openAgentSession(context: Context): Promise<Session & { login: Login }> {
  const target = await readTarget(context)
  const login = await findLogin(context, target)
  if (login === undefined) throw notLoggedIn(target)
  return { client: await clientFor(context, target, login.auth), target, login }
}

/** Opens a session without a login, for enrolling and for open routes. */
export async function openPublicClient(context: Context): Promise<Session> {
  const target = await readTarget(context)
  return { client: await clientFor(context, target, { kind: 'none' }), target, login: undefined }
}

interface ClientWish {
  /** Whether to warn of a server whose keys have changed. */
  readonly isWatched?: boolean
  /** What requests go through first. */
  readonly through?: (transport: Transport) => Transport
}

/**
 * Creates a client over the transport of the command line. With an identity it logs in at once, unless another command of
 * the job has: throws `CliError` if that fails.
 */
export async function clientFor(
  context: Context,
  target: Target,
  auth: LoginAuth,
  { isWatched = true, through = (transport) => transport }: ClientWish = {},
): Promise<Client> {
  const { server, profile } = target
  const own = await transportWith(context, target, auth)
  const transport =
    isWatched && auth.kind !== 'none' && profile?.server_keys !== undefined
      ? (await import('./server-keys.ts')).watchServerKeys(context, target, own)
      : own
  const client = createClient({
    server: server.url,
    auth,
    transport: through(transport),
    // Few verbs have a use for streams.
    streams: async (request) => {
      const { nodeStream } = await import('../frame/stream.ts')
      return nodeStream(await wayTo(context, target), request)
    },
    retries: 2,
    signal: context.signal,
    now: context.now,
    userAgent: `mayfly-cli/${installation.version}`,
    tokens: cacheOf(context, server.text, auth),
  })
  if (auth.kind === 'identity') await (await import('../identity/log-in.ts')).logInOnce(context, client, auth)
  return client
}

/** What this login needs of it. Only a login by key names an issuer, which may change. */
async function transportWith(context: Context, target: Target, auth: LoginAuth): Promise<Transport> {
  const transport = await transportTo(context, target)
  if (auth.kind === 'identity')
    return (await import('../identity/log-in.ts')).withRefusals(target.server.text, auth, transport)
  const { issuer, server_keys: keys } = target.profile ?? {}
  if (auth.kind !== 'private_key_jwt' || issuer === undefined || keys === undefined) return transport
  const { followServer } = await import('./follow-server.ts')
  const open = (other: Target) => transportTo(context, other)
  return followServer({ context, target, auth, transport, open, known: { issuer, keys } })
}

async function transportTo(context: Context, target: Target): Promise<Transport> {
  return nodeTransport(await wayTo(context, target))
}

async function wayTo(context: Context, target: Target): Promise<TransportOptions> {
  const { server } = target
  const isProxied = server.url.startsWith('https:') && !server.isLocal
  return {
    ca: await readAuthorities(target),
    socketPath: server.socketPath,
    proxy: isProxied ? await findProxy(context) : undefined,
    connect: connectorOf(context),
  }
}

/** Most users have no proxy, and need not load the code for one. */
export async function findProxy({ env }: Pick<Context, 'env'>): Promise<Agent | undefined> {
  if ((env['https_proxy'] ?? env['HTTPS_PROXY']) === undefined) return undefined
  return (await import('../frame/proxy.ts')).proxyOf(env)
}

/** The keys of the server, for a login to remember. Throws `UnreachableError`. */
export async function askServerKeys(context: Context, target: Target): Promise<string[]> {
  const { readServerKeys } = await import('./server-keys.ts')
  return readServerKeys(context, target.server, await transportTo(context, target))
}

/** What the server says about itself. Throws `UnreachableError`. */
export async function readServerAt(context: Context, target: Target): Promise<ServerSaysSo | undefined> {
  const { readServer } = await import('./server-keys.ts')
  return readServer(context, target.server, await transportTo(context, target))
}

async function readAuthorities({ caFile }: Target): Promise<string | undefined> {
  if (caFile === undefined) return undefined
  const { readFile } = process.getBuiltinModule('node:fs/promises')
  const text = await readFile(caFile, 'utf8')
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new CliError('usage', `${caFile} does not contain a PEM certificate.`, {
    exit: 2,
    hint: 'Give the certificate of the authority that signed the server\u2019s certificate.',
  })
}
