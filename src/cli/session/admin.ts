import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type Client, MayflyError } from '../../client/client.ts'
import type { Auth } from '../../client/log-in.ts'
import { CliError } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { clientFor } from './open.ts'
import { readPrivateFile } from './private-file.ts'
import { findLogin, givenOf, notLoggedIn, readTarget, type Target } from './session.ts'

/** The server's own default. */
const DATA_DIR = './mayfly-data'

/**
 * A client for `/v1/admin`. Uses the login that a flag or variable names; else, on the server's machine, its unix
 * socket, its admin token or the rule for local callers; else the login of the profile. Throws `CliError`.
 */
export async function openAdminClient(context: Context): Promise<Client> {
  const target = await readTarget(context)
  const isNamed = target.profileFrom !== 'default' || target.variable?.isUsed === true
  if (target.server.isLocal && !isNamed) {
    const local = await localAuth(context, target)
    if (local !== undefined) return clientFor(context, target, local)
  }
  const login = await findLogin(context, target)
  if (login === undefined) throw target.server.isLocal && !isNamed ? notLocal() : notLoggedIn(target)
  return clientFor(context, target, login.auth)
}

/** Undefined if the server on this machine does not accept this user as its administrator. */
async function localAuth(context: Context, target: Target): Promise<Auth | undefined> {
  if (target.server.socketPath !== undefined) return { kind: 'none' }
  const token = await readAdminToken(context, target)
  if (token !== undefined) return { kind: 'admin_token', token }
  const open = await clientFor(context, target, { kind: 'none' })
  try {
    await open.call({ method: 'GET', path: '/api/v1/backends' })
    return { kind: 'none' }
  } catch (error) {
    if (error instanceof MayflyError && (error.status === 401 || error.status === 421)) return undefined
    throw error
  }
}

/** The admin token, if the process that listens there is the server that wrote it: no other may receive the token. */
async function readAdminToken(
  { globals, env, cwd, platform }: Context,
  target: Target,
): Promise<string | undefined> {
  const directory = globals.dataDir ?? givenOf(env['MAYFLY_DATA_DIR'])
  const path = join(resolve(cwd, directory ?? DATA_DIR), 'admin.token')
  const owner = await stat(path).then(
    ({ uid }) => uid,
    () => undefined,
  )
  if (owner === undefined) return undefined
  const listener = platform === 'linux' ? await listenerUid(target.server.url) : undefined
  const isItsOwn = listener !== undefined && (listener === owner || listener === 0)
  // If the system does not tell who listens, the user must have named the directory.
  if (!isItsOwn && (platform === 'linux' || directory === undefined)) return undefined
  const text = await readPrivateFile(path).catch(() => undefined)
  return text !== undefined && /^[0-9a-f]{64}$/.test(text.trim()) ? text.trim() : undefined
}

const LISTEN = '0A'

/** The user whose process listens on this port; undefined if there is none, or more than one. */
export async function listenerUid(url: string): Promise<number | undefined> {
  const { port, protocol } = new URL(url)
  const wanted = Number(port || (protocol === 'https:' ? 443 : 80))
    .toString(16)
    .toUpperCase()
    .padStart(4, '0')
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  )
  const uids = new Set<number>()
  for (const line of tables.flatMap((text) => text.split('\n').slice(1))) {
    const [, local, , state, , , , uid] = line.trim().split(/\s+/)
    if (state === LISTEN && local?.endsWith(`:${wanted}`) && uid !== undefined) uids.add(Number(uid))
  }
  const [only] = uids
  return uids.size === 1 ? only : undefined
}

function notLocal(): CliError {
  return new CliError(
    'not_logged_in',
    'You are not a local administrator of this server, and you are not logged in.',
    {
      exit: 4,
      hint: 'Run it as the user of the server, give its data directory with --data-dir, or run `mayfly login` with an agent that has the admin scope.',
    },
  )
}
