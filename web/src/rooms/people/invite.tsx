import { type FormEvent, useState } from 'react'
import type { InvitedOperator } from '../../../../src/client/wire.ts'
import { useConfirming } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { Snippet } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { linesOf, TextField } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote } from '../../ui/notes.tsx'
import { whoOf } from '../../ui/person.tsx'
import { ShownOnce } from '../../ui/shown-once.tsx'
import { Time } from '../../ui/time.tsx'
import { PersonScopes } from './person-scopes.tsx'

interface State {
  readonly isSent: boolean
  readonly error?: unknown
  readonly made?: InvitedOperator
}

/** Invites somebody, and shows the link that makes them an operator. */
export function Invite({ onClose }: { readonly onClose: () => void }) {
  const confirming = useConfirming()
  const [form, setForm] = useState({
    email: '',
    name: '',
    scopes: '',
    backendScopes: '',
  })
  const [state, setState] = useState<State>({ isSent: false })
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent) return
    setState({ isSent: true })
    try {
      const name = form.name.trim()
      const made = await admin.operators.invite({
        email: form.email.trim(),
        ...(name === '' ? {} : { name }),
        scopes: linesOf(form.scopes),
        backend_scopes: linesOf(form.backendScopes),
      })
      setState({ isSent: false, made })
      await refresh('GET /v1/admin/operators')
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  if (state.made !== undefined)
    return (
      <Dialog title={`${visible(state.made.name)} is invited`} isWide isKept onClose={onClose}>
        <Invitation made={state.made} onDone={onClose} />
      </Dialog>
    )
  return (
    <Dialog
      title="Invite an operator"
      description={`They get no more than you hold. ${confirming}`}
      isWide
      onClose={onClose}
    >
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label="E-mail address"
          type="email"
          required
          maxLength={254}
          data-first
          value={form.email}
          onChange={({ target }) => setForm({ ...form, email: target.value })}
        />
        <TextField
          label="Name"
          maxLength={128}
          hint="Empty: the address."
          value={form.name}
          onChange={({ target }) => setForm({ ...form, name: target.value })}
        />
        <PersonScopes
          scopes={form.scopes}
          backendScopes={form.backendScopes}
          onChange={(changes) => setForm({ ...form, ...changes })}
        />
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" disabled={state.isSent}>
            {state.isSent ? 'Sent, waiting for the answer…' : 'Invite them'}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

interface InvitationProps {
  readonly made: InvitedOperator
  readonly onDone: () => void
}

/** The link is a login: it is shown once. */
export function Invitation({ made, onDone }: InvitationProps) {
  return (
    <ShownOnce title={`The link for ${whoOf(made)}`}>
      <Snippet text={made.invitation.url} what="the link" />
      <p className="text-sm text-muted">
        Whoever opens it first is logged in as {visible(made.name)}. Send it in a way that only they read. It
        works once, and ends <Time at={made.invitation.expires_at} />.
      </p>
      <div>
        <Button look="primary" onClick={onDone}>
          Done, hide it
        </Button>
      </div>
    </ShownOnce>
  )
}
