import { type FormEvent, useState } from 'react'
import { Link } from 'wouter'
import type { Agent, ChangedAgent } from '../../../../src/client/wire.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { Snippet } from '../../ui/copy.tsx'
import { Actions, Dialog } from '../../ui/dialog.tsx'
import { CheckField } from '../../ui/fields.tsx'
import { ErrorNote, Warning } from '../../ui/notes.tsx'
import { tell } from '../../ui/notices.tsx'
import { Scopes } from '../../ui/scopes.tsx'
import { Time } from '../../ui/time.tsx'
import { type AgentForm, changesOf, formOf } from './changes.ts'
import { updateOf } from './command.ts'
import { AgentFields, leaveField } from './form.tsx'

interface Props {
  readonly agent: Agent
  readonly onClose: () => void
}

/** A form with the agent as it was when it was opened, and then what its scopes no longer cover. */
export function Change({ agent: present, onClose }: Props) {
  // What comes in while one types does not change what is typed.
  const [agent] = useState(present)
  const [form, setForm] = useState<AgentForm>(() => formOf(agent))
  const [state, setState] = useState<{ isSent: boolean; error?: unknown; changed?: ChangedAgent }>({
    isSent: false,
  })
  const changes = changesOf(agent, form)
  const isTaking = (changes?.remove_scopes?.length ?? 0) > 0
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent || changes === undefined) return
    setState({ isSent: true })
    try {
      const changed = await admin.agents.update(agent.name, changes)
      await refresh('GET /v1/admin/agents', 'GET /v1/admin/agents/:name', 'GET /v1/admin/tokens')
      tell(`${agent.name} is changed.`)
      if (changed.out_of_scope === undefined && changed.warnings === undefined) onClose()
      else setState({ isSent: false, changed })
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  if (state.changed !== undefined) return <Changed changed={state.changed} onClose={onClose} />
  return (
    <Dialog title={`Change ${agent.name}`} isWide onClose={onClose}>
      <form onSubmit={submit} onKeyDown={leaveField} className="grid gap-4">
        <AgentFields form={form} onChange={setForm} isNew={false} />
        <CheckField
          label="End the credentials that its scopes do not cover"
          hint={
            isTaking
              ? 'Otherwise those that it holds stay until they expire; you are shown them.'
              : 'Also those that an earlier change has left.'
          }
          checked={form.isRevoking}
          onChange={({ target }) => setForm({ ...form, isRevoking: target.checked })}
        />
        {changes !== undefined && <Snippet text={updateOf(agent.name, changes)} what="the command" />}
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            look="primary"
            refused={changes === undefined ? 'Nothing is changed yet.' : undefined}
            disabled={state.isSent}
          >
            {state.isSent ? 'Sent, waiting for the answer…' : 'Change the agent'}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}

/** What a person should know of a change that is done. */
function Changed({ changed, onClose }: { readonly changed: ChangedAgent; readonly onClose: () => void }) {
  const { name, warnings = [], out_of_scope: beyond = [] } = changed
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const left = beyond.filter(({ status }) => status === 'active')
  const end = async () => {
    setState({ isSent: true })
    try {
      await admin.agents.update(name, { revoke: true })
      await refresh('GET /v1/admin/tokens', 'GET /v1/admin/agents/:name')
      tell('They have ended.')
      onClose()
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return (
    <Dialog title={`${name} is changed`} isWide onClose={onClose}>
      <div className="grid gap-3">
        {warnings.map((one) => (
          <Warning key={one}>{one}</Warning>
        ))}
        {beyond.length > 0 && (
          <p>
            {left.length > 0
              ? 'It still holds credentials that its scopes no longer cover:'
              : 'Ended, because its scopes no longer cover them:'}
          </p>
        )}
        <ul className="grid gap-1">
          {beyond.map(({ id, backend, scopes, expires_at }) => (
            <li key={id} className="flex flex-wrap items-center gap-3 border-b border-line/60 py-1">
              <Link className="text-accent underline" href={paths.credential(id)}>
                {backend}
              </Link>
              <Scopes scopes={scopes} />
              <span className="text-muted">
                ends <Time at={expires_at} />
              </span>
            </li>
          ))}
        </ul>
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <Actions>
          <Button onClick={onClose}>Close</Button>
          {left.length > 0 && (
            <Button look="danger" disabled={state.isSent} onClick={() => void end()}>
              {state.isSent ? 'Sent, waiting for the answer…' : `End ${left.length}`}
            </Button>
          )}
        </Actions>
      </div>
    </Dialog>
  )
}
