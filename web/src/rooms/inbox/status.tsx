import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { Status } from '../../ui/status.tsx'

interface Props {
  readonly row: PendingEnrollment
  /** It has left the list of those that wait. */
  readonly isGone?: boolean
}

export function RequestStatus({ row, isGone = false }: Props) {
  if (row.status === 'approved') return <Status look="ok">approved</Status>
  if (row.status !== 'pending') return <Status look="off">{row.status}</Status>
  return isGone ? <Status look="off">decided</Status> : <Status look="wait">waits</Status>
}
