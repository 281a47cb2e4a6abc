import type { PendingEnrollment } from '../../../../src/client/wire.ts'
import { useConfirming } from '../../api/me.ts'
import { Fact, Facts } from '../../ui/facts.tsx'
import { Warning } from '../../ui/notes.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { isAdministering } from './approval.ts'

/** What an approval as requested would change, as the server has worked it out. */
export function Difference({ row }: { readonly row: PendingEnrollment }) {
  const confirming = useConfirming()
  const { added, present, impossible } = row.difference ?? { added: row.scopes, present: [], impossible: [] }
  return (
    <div className="grid gap-3">
      <Facts>
        <Fact name={<Status look="ok">It gains</Status>}>
          <Scopes scopes={added} none="nothing new" />
        </Fact>
        {present.length > 0 && (
          <Fact name={<Status look="off">It has already</Status>}>
            <Scopes scopes={present} />
          </Fact>
        )}
        {impossible.length > 0 && (
          <Fact name={<Status look="wait">Leads nowhere</Status>}>
            <Scopes scopes={impossible} />
            <span className="text-xs text-muted">No backend has this name, or it can never be given.</span>
          </Fact>
        )}
      </Facts>
      {isAdministering(added) && (
        <Warning>With an admin scope it administers Mayfly itself. {confirming}</Warning>
      )}
    </div>
  )
}
