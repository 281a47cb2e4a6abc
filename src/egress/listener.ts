import type { Socket } from 'node:net'
import { unavailable } from '../domain/backend-error.ts'
import { isLoopbackAddress } from '../domain/network/loopback.ts'
import { findListenerUids, findPeerUid, type ReadTable } from '../domain/network/socket-owner.ts'
import { ownUnmappedUid, readTogether } from './system-files.ts'

/** Whose listeners on loopback addresses may get the secrets of a backend, besides those of root and of ourselves (ADR 0041). */
export interface ListenerRules {
  /** Accounts that packages of the upstream make for it. */
  readonly serviceAccounts: readonly string[]
  /** The account that the configuration names; empty: none. Undefined: it was stored before there was this field. */
  readonly localUser: string | undefined
  readonly log: { warn(fields: Record<string, unknown>, message: string): void }
}

export function listenerRulesOf(
  { serviceAccounts = [] }: { readonly serviceAccounts?: readonly string[] },
  { local_user: given }: Readonly<Record<string, unknown>>,
): Omit<ListenerRules, 'log'> {
  return { serviceAccounts, localUser: typeof given === 'string' ? given : undefined }
}

interface ListenerParts {
  readonly platform?: NodeJS.Platform
  readonly read?: ReadTable
}

const ROOT = 0

/**
 * Throws `BackendError` for a connected socket whose other end belongs to an account of this machine that may not have the
 * secrets. Other platforms than Linux do not say who listens.
 */
export function createListenerCheck(
  { serviceAccounts, localUser, log }: ListenerRules,
  { platform = process.platform, read = readTogether }: ListenerParts = {},
): (socket: Socket) => Promise<void> {
  const names = [...serviceAccounts, ...(localUser ? [localUser] : [])]
  let warned = false
  return async (socket) => {
    if (platform !== 'linux' || !isLoopbackAddress(socket.remoteAddress)) return
    const uid = await ownerOf(socket, read)
    if (uid === ROOT || (uid !== undefined && uid === process.getuid?.())) return
    const accounts = await read('/etc/passwd')
    if (uid !== undefined && names.some((name) => uidsOf(name, accounts).includes(uid))) return
    const who = uid === undefined ? UNKNOWN : ANOTHER
    const detail = uid === undefined ? 'uid unknown' : `uid ${uid}`
    if (localUser !== undefined) throw unavailable(`${who}; nothing was sent.${HINT}`, { detail })
    if (!warned)
      log.warn({ detail }, `${who}.${HINT} Once the configuration is changed, nothing is sent there.`)
    warned = true
  }
}

/** A check for an upstream that only these accounts may run, besides root and ourselves. */
export function onlyListeners(accounts: readonly string[] = []): (socket: Socket) => Promise<void> {
  return createListenerCheck({ serviceAccounts: accounts, localUser: '', log: { warn() {} } })
}

const ANOTHER = 'Another account of this machine listens on the loopback address of the upstream'
const UNKNOWN =
  'It cannot be determined which account of this machine listens on the loopback address of the upstream'
const HINT = ' If that account runs the upstream, name it in "local_user".'

/** The uid at the other end; undefined where that is not certain. */
async function ownerOf(socket: Socket, read: ReadTable): Promise<number | undefined> {
  const uid = (await findPeerUid(socket, read)) ?? (await ownerOfQueue(socket, read))
  return uid === ownUnmappedUid() ? undefined : uid
}

/** A connection that no process has accepted yet is in the queue of a listener, which cannot end without ending it. */
async function ownerOfQueue(socket: Socket, read: ReadTable): Promise<number | undefined> {
  const { remoteAddress: address, remotePort: port } = socket
  if (address === undefined || port === undefined) return undefined
  const [first, ...others] = await findListenerUids(address, port, read)
  // Accepted in the meantime: then perhaps by another one than listens now.
  const accepted = await findPeerUid(socket, read)
  if (accepted !== undefined) return accepted
  return others.every((other) => other === first) ? first : undefined
}

/** Of an account in `/etc/passwd` (passwd(5)), or of a number, for accounts without a name here, such as those of containers. */
function uidsOf(account: string, passwd: string): number[] {
  const rows = passwd.split('\n').map((line) => line.split(':'))
  const row = rows.find(([name]) => name === account)
  const uid = row?.[2] ?? account
  return /^\d{1,10}$/.test(uid) ? [Number(uid)] : []
}
