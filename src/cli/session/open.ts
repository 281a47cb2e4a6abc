import type { Agent } from 'node:https'
import { type Client, createClient } from '../../client/client.ts'
import type { Auth } from '../../client/log-in.ts'
import type { Transport } from '../../client/transport.ts'
import { CliError } from '../frame/failure.ts'
import { readVersion } from '../frame/read-version.ts'
import { nodeTransport } from '../frame/transport.ts'
import type { Context } from '../frame/verb.ts'
import { connectorOf } from './local-server.ts'
import { findLogin, type Login, notLoggedIn, readTarget, type Target } from './session.ts'
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

/** Creates a client over the transport of the command line. */
export async function clientFor(context: Context, target: Target, auth: Auth): Promise<Client> {
  const { server, profile } = target
  const transport = await transportTo(context, target)
  const isWatched = auth.kind !== 'none' && profile?.server_keys !== undefined
  return createClient({
    server: server.url,
    auth,
    transport: isWatched
      ? (await import('./server-keys.ts')).watchServerKeys(context, target, transport)
      : transport,
    retries: 2,
    signal: context.signal,
    now: context.now,
    userAgent: `mayfly-cli/${readVersion()}`,
    tokens: cacheOf(context, server.text, auth),
  })
}

async function transportTo(context: Context, target: Target): Promise<Transport> {
  const { server } = target
  const isProxied = server.url.startsWith('https:') && !server.isLocal
  return nodeTransport({
    ca: await readAuthorities(target),
    socketPath: server.socketPath,
    proxy: isProxied ? await findProxy(context) : undefined,
    connect: connectorOf(context),
  })
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
