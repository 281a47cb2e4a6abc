import type { Token } from '../../../../src/client/wire.ts'
import { Status } from '../../ui/status.tsx'

/** The state of a credential, here and upstream. */
export function CredentialStatus({ row }: { readonly row: Token }) {
  if (row.status === 'active') return <Status look="ok">live</Status>
  if (row.upstream === 'pending')
    return row.stuck === true ? <Status look="bad">not ended</Status> : <Status look="wait">ending…</Status>
  return <Status look="off">{row.status}</Status>
}
