import { useState } from 'react'
import type { Backend } from '../../../../src/client/wire.ts'
import { useConfirming } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { CheckField } from '../../ui/fields.tsx'
import { tell } from '../../ui/notices.tsx'

interface Props {
  readonly backend: Backend
  readonly onClose: () => void
  /** It is deleted, with nothing left to wait for. */
  readonly onGone: () => void
}

export function DeleteBackend({ backend: { name, live }, onClose, onGone }: Props) {
  const confirming = useConfirming()
  const [isForced, setForced] = useState(false)
  return (
    <Confirm
      title={`Delete the backend ${name}?`}
      description={`Its configuration and its secrets are gone for ever. What agents may do at it stays in their scopes, and means nothing until a backend has this name again. ${confirming}`}
      action="Delete the backend"
      onClose={onClose}
      work={async () => {
        const deletion = await admin.backends.delete(name, isForced ? { force: true } : {})
        await refresh('GET /v1/admin/backends', 'GET /v1/admin/tokens')
        if (deletion === undefined) {
          tell(`${name} is deleted.`)
          onGone()
        } else {
          await refresh('GET /v1/admin/backends/:name')
        }
      }}
    >
      <CheckField
        label={`End its live credentials first (${live.toLocaleString('en')} now)`}
        hint="Without this, a backend with live credentials is not deleted."
        checked={isForced}
        onChange={({ target }) => setForced(target.checked)}
      />
    </Confirm>
  )
}
