import { type FormEvent, useState } from 'react'
import { pathPart } from '../../../../src/client/send.ts'
import { useConfirming } from '../../api/me.ts'
import { queries, useRead } from '../../api/queries.ts'
import { authorizer, request } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { Section } from '../../ui/facts.tsx'
import { TextField } from '../../ui/fields.tsx'
import { ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Name } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

const ROUTE = 'GET /v1/admin/operators/:id/passkeys'
const again = () =>
  Promise.all([ROUTE, 'GET /v1/admin/me'].map((route) => queries.invalidateQueries({ queryKey: [route] })))

interface Props {
  readonly operatorId: string
  /** Of one's own account: until when a passkey may be registered without another; undefined: it is somebody else's. */
  readonly mayRegister?: string | null
}

export function Passkeys({ operatorId, mayRegister }: Props) {
  const { data, error } = useRead(ROUTE, { id: operatorId })
  const confirming = useConfirming()
  const [removing, setRemoving] = useState<{ id: string; name: string }>()
  return (
    <Section title="Passkeys" isOfPage>
      {error !== null && <ErrorNote error={error} />}
      {data === undefined && error === null && <Skeleton lines={2} />}
      <ul className="grid gap-1">
        {data?.map(({ id, name, created_at, last_used, works_here }) => (
          <li
            key={id}
            className="flex flex-wrap items-center justify-between gap-2 border-b border-line/60 py-1.5"
          >
            <span className="min-w-0">
              <Name text={name} />
              <span className="text-xs text-muted">
                registered <Time at={created_at} />, last used <Time at={last_used} />
                {!works_here && '; of another address of this server: it does not work any more'}
              </span>
            </span>
            <Button aria-label={`Remove ${name}`} onClick={() => setRemoving({ id, name })}>
              Remove
            </Button>
          </li>
        ))}
      </ul>
      {data?.length === 0 && (
        <p className="text-muted">
          {mayRegister === undefined
            ? 'None yet: they log in by a link.'
            : 'None yet. With a passkey you log in without a link, and confirm what cannot be undone.'}
        </p>
      )}
      {mayRegister !== undefined && <Register isFirst={data?.length === 0 && mayRegister !== null} />}
      {removing !== undefined && (
        <Confirm
          title={`Remove the passkey ${removing.name}?`}
          description={`The sessions that it started end at once. ${confirming}`}
          action="Remove the passkey"
          onClose={() => setRemoving(undefined)}
          work={async () => {
            await authorizer.call({
              method: 'DELETE',
              path: `/v1/admin/operators/${pathPart(operatorId)}/passkeys/${pathPart(removing.id)}`,
            })
            await again()
          }}
        />
      )}
    </Section>
  )
}

function Register({ isFirst }: { readonly isFirst: boolean }) {
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const [name, setName] = useState('This device')
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    setState({ isSent: true })
    try {
      const { options } = await request('POST /v1/console/passkeys/options', {})
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
        options as unknown as PublicKeyCredentialCreationOptionsJSON,
      )
      const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
      const body = { name: name.trim(), registration: made.toJSON() as never }
      await request('POST /v1/console/passkeys', { body })
      await again()
      setState({ isSent: false })
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return (
    <form onSubmit={submit} className="mt-3 grid gap-2">
      <div className="flex flex-wrap items-end gap-2">
        <TextField
          label="Name of a new passkey"
          required
          maxLength={128}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        <Button
          type="submit"
          look={isFirst ? 'primary' : 'plain'}
          className="min-h-9!"
          disabled={state.isSent}
        >
          Register a passkey
        </Button>
      </div>
      {state.error !== undefined && <ErrorNote error={state.error} />}
    </form>
  )
}
