import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { CreatedAgent } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Actions } from '../../ui/dialog.tsx'
import { ErrorNote, Warning } from '../../ui/notes.tsx'
import { Detail } from '../../ui/page.tsx'
import { SHOWN_ONCE } from '../../ui/shown-once.tsx'
import { type AgentForm, EMPTY, newAgentOf } from './changes.ts'
import { commandOf } from './command.ts'
import { AgentFields, leaveField } from './form.tsx'
import { Secrets } from './secrets.tsx'

/** A form, and then what the server shows once. */
export function NewAgent() {
  const [, go] = useLocation()
  const [form, setForm] = useState<AgentForm>(EMPTY)
  const [state, setState] = useState<{ isSent: boolean; error?: unknown; made?: CreatedAgent }>({
    isSent: false,
  })
  const refused = useRefusal('createAgent')
  const box = useRef<HTMLFormElement>(null)
  useEffect(() => box.current?.querySelector<HTMLElement>('[data-first]')?.focus(), [])
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent || refused !== undefined) return
    setState({ isSent: true })
    try {
      const made = await admin.agents.create(newAgentOf(form))
      setState({ isSent: false, made })
      await refresh('GET /v1/admin/agents')
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  const body = newAgentOf(form)
  return (
    <Detail
      kind="New agent"
      title={state.made === undefined ? 'Create an agent' : `${state.made.name} is created`}
      back={paths.agents()}
      kept={state.made === undefined ? undefined : SHOWN_ONCE}
      actions={<CopyAs command={commandOf(body)} request="POST /v1/admin/agents" body={body} />}
    >
      {state.made !== undefined ? (
        <>
          <Warnings made={state.made} />
          <Secrets made={state.made} onDone={() => go(paths.agent(state.made?.name ?? ''))} />
        </>
      ) : (
        <form ref={box} onSubmit={submit} onKeyDown={leaveField} className="grid gap-4">
          <p className="text-muted">
            You hand its token to its machine yourself. A machine that runs <code>mayfly enroll</code> makes a
            key of its own instead, and waits in the inbox.
          </p>
          <AgentFields form={form} onChange={setForm} isNew />
          {state.error !== undefined && <ErrorNote error={state.error} />}
          <Actions>
            <Button onClick={() => go(paths.agents())}>Cancel</Button>
            <Button type="submit" look="primary" refused={refused} disabled={state.isSent}>
              {state.isSent ? 'Sent, waiting for the answer…' : 'Create the agent'}
            </Button>
          </Actions>
        </form>
      )}
    </Detail>
  )
}

function Warnings({ made: { warnings = [] } }: { readonly made: CreatedAgent }) {
  if (warnings.length === 0) return null
  return (
    <Warning>
      {warnings.map((one) => (
        <p key={one}>{one}</p>
      ))}
    </Warning>
  )
}
