import type { Token } from '../../../../src/client/wire.ts'
import { Status } from '../../ui/status.tsx'

/** It should have ended upstream, and has not: somebody may have to look. */
export const isUnended = ({ failure, stuck }: Token): boolean => failure !== undefined || stuck === true

/** The state of a credential, here and upstream. */
export function CredentialStatus({ row }: { readonly row: Token }) {
  if (row.status === 'active') return <Status look="ok">live</Status>
  if (row.upstream === 'pending')
    return isUnended(row) ? <Status look="bad">not ended</Status> : <Status look="wait">ending…</Status>
  return <Status look="off">{row.status}</Status>
}
