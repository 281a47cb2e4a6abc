import { resolve } from 'node:path'
import { type Client, MayflyError } from '../../client/client.ts'
import { adminSocketOf } from '../../files/admin-socket.ts'
import { isAuditFull } from '../admin/exact-name.ts'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import type { LoginAuth } from '../identity/auth.ts'
import { findAnyLogin } from './find-login.ts'
import { isAnswered, isOwnOrRoots, namedDataDir, SYSTEM_DATA_DIR } from './local-server.ts'
import { clientFor } from './open.ts'
import { serverOf } from './server-address.ts'
import { findStoredOperator, isOperators, notLoggedIn, readTarget, type Target } from './session.ts'

/** The server's own default. */
const DATA_DIR = './mayfly-data'
const NO_LOGIN: LoginAuth = { kind: 'none' }

/**
 * A client with the login of an agent. Undefined without one, and with --data-dir, which names a local administrator. Throws
 * `CliError`.
 */
export async function openOwnClient(context: Context): Promise<Client | undefined> {
  if (context.globals.dataDir !== undefined) return undefined
  const target = await readTarget(context)
  const login = await findAnyLogin(context, target)
  return login === undefined || isOperators(login) ? undefined : clientFor(context, target, login.auth)
}

/**
 * A client for `/v1/admin`. Uses the socket in the directory of --data-dir; else the login of a variable, or an operator's of
 * the profile; else the agent's of a profile that a flag or variable names; else, on the server's machine, its socket or the
 * rule for local callers; else the agent's of the profile. `asLocal`: no operator's login can do it. Throws `CliError`.
 */
export async function openAdminClient(
  context: Context,
  { asLocal = false }: { readonly asLocal?: boolean } = {},
): Promise<Client> {
  const target = await readTarget(context)
  const named = await openNamedDirectory(context, target)
  if (named !== undefined) return named
  if (!asLocal && (target.profileFrom === 'flag' || context.globals.dataDir === undefined)) {
    const operators = await openOperatorClient(context, target)
    if (operators !== undefined) return operators
  }
  // A flag wins over every variable.
  const isNamed =
    target.profileFrom === 'flag' ||
    (context.globals.dataDir === undefined &&
      (target.profileFrom !== 'default' || target.variable?.isUsed === true))
  if (target.server.isLocal && !isNamed) {
    const local = await openLocally(context, target)
    if (local !== undefined) return local
  }
  const login = await findAnyLogin(context, target)
  if (login === undefined) throw target.server.isLocal && !isNamed ? notLocal() : notLoggedIn(target)
  return clientFor(context, target, login.auth)
}

/** Undefined without an operator's login. Throws `CliError` for one that has expired. */
async function openOperatorClient(context: Context, target: Target): Promise<Client | undefined> {
  const operator = target.profile?.operator
  if (operator === undefined || target.variable?.isUsed === true) return undefined
  const { ended, withFreshLogin } = await import('../person/fresh-login.ts')
  const token = await findStoredOperator(context, target)
  if (token === undefined || Date.parse(operator.expires) <= context.now()) throw ended(target, operator)
  return clientFor(
    context,
    target,
    { kind: 'bearer', token },
    { through: (transport) => withFreshLogin(context, { target, operator, token }, transport) },
  )
}

/** Undefined without --data-dir, with another flag that names a server, and if no server accepts this user there. */
async function openNamedDirectory(context: Context, target: Target): Promise<Client | undefined> {
  const { dataDir, server, profile } = context.globals
  if (dataDir === undefined || server !== undefined || profile !== undefined) return undefined
  const socketPath = await answered(resolve(context.cwd, dataDir))
  if (socketPath === undefined) return undefined
  return clientFor(context, { ...target, server: serverOf(`unix:${socketPath}`, context.env) }, NO_LOGIN)
}

/** Undefined if the server on this machine does not accept this user as its administrator. */
async function openLocally(context: Context, target: Target): Promise<Client | undefined> {
  const asNamed = await clientFor(context, target, NO_LOGIN)
  if (target.server.socketPath !== undefined) return asNamed
  const socketPath = await findAdminSocket(context)
  if (socketPath !== undefined) {
    const server = serverOf(`unix:${socketPath}`, context.env)
    const overSocket = await clientFor(context, { ...target, server }, NO_LOGIN)
    // The directory may be that of another server than the one whose address was given.
    if (target.serverFrom === 'default' || (await haveSameKeys(overSocket, asNamed))) return overSocket
  }
  try {
    await asNamed.call({ method: 'GET', path: '/api/v1/backends' })
    return asNamed
  } catch (error) {
    if (error instanceof MayflyError && (error.status === 401 || error.status === 421)) return undefined
    // It knows this caller, and cannot record the read: it still removes and revokes.
    if (isAuditFull(error)) return asNamed
    throw error
  }
}

/** The socket in the data directory, or that of an installed server, if it accepts connections of this user. */
async function findAdminSocket(context: Context): Promise<string | undefined> {
  const named = namedDataDir(context)
  if (named !== undefined) return answered(named)
  const usual = resolve(context.cwd, DATA_DIR)
  // In a directory that others can write, anybody may have made one of this name.
  const found = (await isOwnOrRoots(usual)) ? await answered(usual) : undefined
  return found ?? answered(SYSTEM_DATA_DIR)
}

async function answered(directory: string): Promise<string | undefined> {
  const path = adminSocketOf(directory)
  return (await isAnswered(path)) ? path : undefined
}

/** The socket of the server with this data directory: for what only its user may do. Throws `CliError`. */
export async function openSocketClient(context: Context, dataDir: string): Promise<Client> {
  const socketPath = adminSocketOf(resolve(context.cwd, dataDir))
  if (!(await isAnswered(socketPath)))
    throw new CliError('no_server', `No server answers this user at ${socketPath}.`, {
      exit: 3,
      hint: 'Run it as root or the user of the server, while the server runs; --data-dir or --config names another one.',
    })
  const target = await readTarget(context)
  const server = serverOf(`unix:${socketPath}`, context.env)
  return clientFor(context, { ...target, server }, NO_LOGIN)
}

async function haveSameKeys(one: Client, other: Client): Promise<boolean> {
  const call = { method: 'GET', path: '/.well-known/jwks.json' } as const
  const replies = await Promise.all([one, other].map((client) => client.call(call)))
  return new Set(replies.map(({ body }) => JSON.stringify(body))).size === 1
}

function notLocal(): CliError {
  return new CliError(
    'not_logged_in',
    'You are not a local administrator of this server, and you are not logged in.',
    {
      exit: 4,
      hint: 'Run it as the user of the server, give its data directory with --data-dir, or run `mayfly login --browser`, or `mayfly login` with an agent that has the admin scope.',
    },
  )
}
