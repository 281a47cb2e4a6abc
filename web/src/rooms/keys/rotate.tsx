import { useState } from 'react'
import { useConfirming } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { LifetimeField } from '../../ui/lifetimes.tsx'
import { tell } from '../../ui/notices.tsx'
import { exact } from '../../ui/times.ts'

/** A new key of the issuer. Without a grace, every access token ends at once. */
export function RotateKeys({ onClose }: { readonly onClose: () => void }) {
  const confirming = useConfirming()
  const [grace, setGrace] = useState('1h')
  return (
    <Confirm
      title="Sign access tokens with a new key?"
      description={
        grace === ''
          ? `Every access token that agents hold ends at once; they log in again. ${confirming}`
          : `Access tokens that agents hold verify for another ${grace}. ${confirming}`
      }
      action="Sign with a new key"
      isDanger={grace === ''}
      onClose={onClose}
      work={async () => {
        const { previous_valid_until } = await admin.keys.rotate(grace === '' ? {} : { grace })
        await refresh('GET /v1/admin/keys/issuer')
        tell(
          previous_valid_until === null
            ? 'A new key signs. Tokens of the old one have ended.'
            : `A new key signs. The old one verifies until ${exact(Date.parse(previous_valid_until))}.`,
        )
      }}
    >
      <LifetimeField
        label="The old key verifies for another"
        value={grace}
        onChange={setGrace}
        none="no time: all tokens end now"
      />
    </Confirm>
  )
}
