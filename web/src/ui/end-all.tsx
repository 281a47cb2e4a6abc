import { useConfirming } from '../api/me.ts'
import { refresh } from '../api/queries.ts'
import { admin } from '../api/request.ts'
import { Confirm } from './confirm.tsx'
import { tell } from './notices.tsx'

interface Props {
  readonly agent: string | undefined
  readonly backend: string | undefined
  readonly onClose: () => void
}

/** Ends everything of an agent, of a backend, or of an agent at a backend. The server asks for a confirmation. */
export function EndAll({ agent, backend, onClose }: Props) {
  const confirming = useConfirming()
  const whose = [agent, backend].filter((one) => one !== undefined).join(' at ')
  return (
    <Confirm
      title={`End all credentials of ${whose}?`}
      description={`Every live one ends at once, also those that this list does not show yet. ${confirming}`}
      action="End all"
      onClose={onClose}
      work={async () => {
        const { revoked, remaining } = await admin.tokens.revokeAll({ agent, backend })
        tell(
          remaining === 0
            ? `${revoked} credentials have ended.`
            : `${revoked} credentials have ended; ${remaining} are left. End the rest again.`,
        )
        await refresh(
          'GET /v1/admin/tokens',
          'GET /v1/admin/agents',
          'GET /v1/admin/agents/:name',
          'GET /v1/admin/backends/:name',
        )
      }}
    />
  )
}
