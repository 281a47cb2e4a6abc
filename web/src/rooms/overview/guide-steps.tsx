import { type FormEvent, type ReactNode, useState } from 'react'
import { Link } from 'wouter'
import type { CreatedAgent, TriedBackend } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { Snippet } from '../../ui/copy.tsx'
import { TextField } from '../../ui/fields.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { ShownOnce } from '../../ui/shown-once.tsx'
import { Tried } from '../../ui/tried.tsx'

interface Props {
  readonly onAct: () => void
}

const LINK = 'text-accent underline underline-offset-2'

/** The request of a step: sent once, and what it refuses stands in its form. */
function useAct<T>(work: () => Promise<T>, onAct: () => void) {
  const [state, setState] = useState<{ isSent: boolean; done?: T; error?: unknown }>({ isSent: false })
  const run = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent) return
    onAct()
    setState({ isSent: true })
    try {
      setState({ isSent: false, done: await work() })
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return { ...state, run }
}

export function AddBackend({ onAct }: Props) {
  const [name, setName] = useState('demo')
  const [audience, setAudience] = useState('demo')
  const refused = useRefusal('createBackend')
  const { isSent, error, run } = useAct(async () => {
    await admin.backends.create({ type: 'jwt', name: name.trim(), config: { audience: audience.trim() } })
    await refresh('GET /v1/admin/backends')
  }, onAct)
  return (
    <StepForm
      text="A backend is something that credentials are for: a database, a cloud, a repository. Begin with one that signs tokens by itself, because it needs nothing else."
      onSubmit={run}
      error={error}
    >
      <TextField label="Name" required value={name} onChange={({ target }) => setName(target.value)} />
      <TextField
        label="Audience of its tokens"
        required
        value={audience}
        onChange={({ target }) => setAudience(target.value)}
      />
      <Button type="submit" look="primary" className="min-h-9!" refused={refused} disabled={isSent}>
        {isSent ? 'Sent…' : 'Add the backend'}
      </Button>
      <Link className={`${LINK} py-2`} href={paths.newBackend()}>
        Another kind: PostgreSQL, GitHub, AWS…
      </Link>
    </StepForm>
  )
}

interface AgentProps extends Props {
  readonly backend: string | undefined
  readonly isDone: boolean
}

/** The secrets are here as long as this page is, and nowhere else. */
export function CreateAgent({ backend, isDone, onAct }: AgentProps) {
  const [name, setName] = useState('first-agent')
  const [scope, setScope] = useState<string>()
  const refused = useRefusal('createAgent')
  const scopes = [(scope ?? backend ?? '').trim()].filter((one) => one !== '')
  const { isSent, error, done, run } = useAct(async () => {
    const made = await admin.agents.create({ name: name.trim(), scopes })
    await refresh('GET /v1/admin/agents')
    return made
  }, onAct)
  if (done !== undefined) return <Secrets agent={done} />
  if (isDone) return null
  return (
    <StepForm
      text="An agent is whoever asks for credentials: a CI job, a script, an assistant. Its scopes say what it may ask for."
      onSubmit={run}
      error={error}
    >
      <TextField label="Name" required value={name} onChange={({ target }) => setName(target.value)} />
      <TextField
        label="Scope"
        value={scope ?? backend ?? ''}
        onChange={({ target }) => setScope(target.value)}
      />
      <Button type="submit" look="primary" className="min-h-9!" refused={refused} disabled={isSent}>
        {isSent ? 'Sent…' : 'Create the agent'}
      </Button>
      <Link className={`${LINK} py-2`} href={paths.newAgent()}>
        More choices
      </Link>
    </StepForm>
  )
}

function Secrets({ agent }: { readonly agent: CreatedAgent }) {
  return (
    <ShownOnce title={`The secrets of ${agent.name}`}>
      <div className="grid gap-1">
        <p className="text-sm text-muted">Its token</p>
        <Snippet text={agent.token} what="the token" />
        <p className="mt-2 text-sm text-muted">Or a client id and secret, for programs that speak OAuth</p>
        <Snippet text={agent.oidc.client_id} what="the client id" />
        <Snippet text={agent.oidc.client_secret} what="the client secret" />
      </div>
    </ShownOnce>
  )
}

interface TryProps extends Props {
  readonly backend: string | undefined
  readonly isNext: boolean
}

export function TryBackend({ backend, isNext, onAct }: TryProps) {
  const refused = useRefusal('tryBackend')
  const name = backend ?? ''
  const { isSent, error, done, run } = useAct<TriedBackend>(async () => {
    const tried = await admin.backends.try(name)
    await refresh('GET /v1/admin/tokens', 'GET /v1/admin/overview', 'GET /v1/admin/backends')
    return tried
  }, onAct)
  return (
    <div className="grid gap-3">
      {(isNext || done !== undefined || error !== undefined) && (
        <StepForm
          text={`Mayfly logs in to ${name}, issues a credential for a minute, gives it to nobody, and ends it. Both are recorded as any other.`}
          onSubmit={run}
          error={error}
        >
          <Button
            type="submit"
            look={done === undefined ? 'primary' : 'plain'}
            refused={refused}
            disabled={isSent}
          >
            {isSent ? 'Trying…' : done === undefined ? 'Try it' : 'Try it again'}
          </Button>
        </StepForm>
      )}
      <div role="status">{done !== undefined && <Tried tried={done} />}</div>
      {done?.steps.some((step) => step.error !== undefined) === true && (
        <p>
          <Link className={LINK} href={paths.backend(name)}>
            Repair {name}
          </Link>
          , then try it again.
        </p>
      )}
    </div>
  )
}

interface FormProps {
  readonly text: string
  readonly onSubmit: (event: FormEvent) => void
  readonly error: unknown
  readonly children: ReactNode
}

function StepForm({ text, onSubmit, error, children }: FormProps) {
  return (
    <form onSubmit={onSubmit} className="grid gap-3">
      <p className="max-w-[72ch] text-muted">{text}</p>
      <div className="flex flex-wrap items-end gap-3">{children}</div>
      {error !== undefined && <ErrorNote error={error} />}
    </form>
  )
}
