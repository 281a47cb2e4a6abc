import type { Socket } from 'node:net'
import { createPeerUids } from '../egress/peer-uid.ts'
import type { ProxyLog, ProxySettings } from './types.ts'

interface AdmissionParts {
  /** Default: our own. */
  readonly uids?: ProxySettings['uids']
  readonly log: ProxyLog
}

/** Whether the connection is of a user that may connect. Only Linux says whose it is; elsewhere a login or a placeholder protects the port. */
export function createAdmission({ uids, log }: AdmissionParts): (raw: Socket) => Promise<boolean> | boolean {
  if (uids === 'any' || process.platform !== 'linux') return () => true
  const may = uids ?? [process.getuid?.()]
  const uidOf = createPeerUids()
  let hasWarned = false
  return async (raw) => {
    const uid = await uidOf(raw)
    if (uid !== undefined && may.includes(uid)) return true
    if (!hasWarned && !raw.destroyed)
      log.warn(
        'another user, or one without a number here, connected, and was turned away; --uid of `mayfly proxy` names those that may connect',
      )
    hasWarned = true
    return false
  }
}
