import { lstatSync, readFileSync, statSync } from 'node:fs'
import type { NetConnectOpts, Socket } from 'node:net'
import { dirname, resolve } from 'node:path'
import { isLoopbackAddress } from '../../domain/network/loopback.ts'
import { findListenerUids } from '../../domain/network/socket-owner.ts'
import { unmappedUid } from '../../domain/network/socket-table.ts'
import { withSocketPath } from '../../files/admin-socket.ts'
import { CliError, EXIT } from '../frame/failure.ts'
import type { Context } from '../frame/verb.ts'
import { givenOf } from './session.ts'

/** The data directory of our systemd unit. Only root can make it, so its owner is the user of the server. */
export const SYSTEM_DATA_DIR = '/var/lib/mayfly'

/** The data directory that the user names, as an absolute path. */
export function namedDataDir({ globals, env, cwd }: Context): string | undefined {
  const named = globals.dataDir ?? givenOf(env['MAYFLY_DATA_DIR'])
  return named === undefined ? undefined : resolve(cwd, named)
}

/**
 * Opens connections without TLS. On this machine it hands out only a connection to a process of root, of this user, or
 * of the owner of the data directory: any other user could listen there in place of the server, and would learn each
 * secret that is sent. Rejects with `CliError`, or the error of the connection.
 */
export function connectorOf(context: Context): (options: NetConnectOpts) => Promise<Socket> {
  return async (options) => {
    // The agent of node:http says null for none.
    if ('path' in options && typeof options.path === 'string') {
      await checkSocket(context, options.path)
      return withSocketPath(options.path, (path) => connected({ ...options, path }))
    }
    const socket = await connected(options)
    try {
      await checkListener(context, socket)
      return socket
    } catch (error) {
      socket.destroy()
      throw error
    }
  }
}

function connected(options: NetConnectOpts): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = process.getBuiltinModule('node:net').connect(options)
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** Whether anybody accepts connections on this socket from this user. */
export function isAnswered(path: string): Promise<boolean> {
  return withSocketPath(path, async (short) => {
    const socket = await connected({ path: short })
    socket.destroy()
    return true
  }).catch(() => false)
}

/** Whether the file belongs to root or to this user. */
export async function isOwnOrRoots(path: string): Promise<boolean> {
  const owner = ownerOf(path)
  return owner !== undefined && [0, process.getuid?.()].includes(owner)
}

/** A socket that is missing passes, because connecting to it fails. */
async function checkSocket({ platform }: Context, path: string): Promise<void> {
  const facts = lstatSync(path, { throwIfNoEntry: false })
  const own = process.getuid?.()
  if (facts === undefined || own === undefined) return
  if (!facts.isSocket())
    throw new CliError('not_a_socket', `${path} is not a socket.`, {
      hint: 'Give the path of the socket itself.',
    })
  const trusted = [0, own, ownerOf(dirname(path))]
  if (trusted.includes(facts.uid) && facts.uid !== unmappedUidOf(platform)) return
  throw new CliError('server_of_another_user', `${path} belongs to another user; nothing was sent.`, {
    exit: EXIT.unreachable,
    hint: 'Check the path, and that you run as the user of the server.',
  })
}

/** Linux only: other systems do not say who listens. */
async function checkListener(context: Context, socket: Socket): Promise<void> {
  const { remoteAddress: address, remotePort: port } = socket
  if (address === undefined || port === undefined)
    throw Object.assign(new Error('the connection is gone'), { code: 'ECONNRESET' })
  if (context.platform !== 'linux' || !isLoopbackAddress(address)) return
  const directory = namedDataDir(context) ?? SYSTEM_DATA_DIR
  const trusted = [0, process.getuid?.(), ownerOf(directory)]
  const unmapped = unmappedUidOf(context.platform)
  const uids = await findListenerUids(address, port, async (path) => readOrEmpty(path))
  const known = uids.filter((uid) => uid !== undefined && uid !== unmapped)
  if (known.length > 0 && known.length === uids.length && known.every((uid) => trusted.includes(uid))) return
  const where = `${address}:${port}`
  const message =
    known.length > 0
      ? `Another user of this machine listens on ${where}; nothing was sent.`
      : `It cannot be determined which user listens on ${where}; nothing was sent.`
  throw new CliError('server_of_another_user', message, {
    exit: EXIT.unreachable,
    hint: 'Use the https:// address of the server. If that user runs your server, set MAYFLY_DATA_DIR to its data directory.',
  })
}

function unmappedUidOf(platform: NodeJS.Platform): number | undefined {
  if (platform !== 'linux') return undefined
  return unmappedUid(readOrEmpty('/proc/self/uid_map'), readOrEmpty('/proc/sys/kernel/overflowuid'))
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid
  } catch {
    return undefined
  }
}
