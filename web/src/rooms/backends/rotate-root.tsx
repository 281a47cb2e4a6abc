import type { Backend } from '../../../../src/client/wire.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { tell } from '../../ui/notices.tsx'

/** A new secret for Mayfly's own login, which nobody sees. */
export function RotateRoot({
  backend,
  onClose,
}: {
  readonly backend: Backend
  readonly onClose: () => void
}) {
  const { name, rotation } = backend
  return (
    <Confirm
      title={
        rotation === undefined ? `Replace the secret of ${name}?` : `Complete the replacement at ${name}?`
      }
      description="Mayfly makes a new secret for its own login at the upstream, which nobody sees, and ends the old one. Credentials stay valid. Anything else that logs in with the old secret stops working."
      action="Replace it"
      onClose={onClose}
      work={async () => {
        const { fields, old_ended } = await admin.backends.rotateRoot(name)
        await refresh('GET /v1/admin/backends', 'GET /v1/admin/backends/:name')
        const left = old_ended ? '' : ' The old one could not be ended yet; the server goes on trying.'
        tell(`${name} has a new ${fields.join(' and ')}.${left}`)
      }}
    />
  )
}
