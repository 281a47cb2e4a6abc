import { type FormEvent, useId, useState } from 'react'
import type { TriedBackend } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Input, linesOf } from '../../ui/fields.tsx'
import { ErrorNote } from '../../ui/notes.tsx'
import { Tried } from '../../ui/tried.tsx'

interface Props {
  readonly name: string
  /** Scopes of the kind, relative to a backend. */
  readonly examples: readonly string[]
  readonly allowed: readonly string[] | undefined
}

/** Issues a credential that nobody receives, and ends it. */
export function Trial({ name, examples, allowed }: Props) {
  const [scopes, setScopes] = useState('')
  const [state, setState] = useState<{ isSent: boolean; tried?: TriedBackend; error?: unknown }>({
    isSent: false,
  })
  const refused = useRefusal('tryBackend')
  const id = useId()
  const asked = linesOf(scopes)
  const body = asked.length === 0 ? {} : { scopes: asked }
  const run = async (event: FormEvent) => {
    event.preventDefault()
    if (refused !== undefined || state.isSent) return
    setState({ isSent: true })
    try {
      setState({ isSent: false, tried: await admin.backends.try(name, body) })
    } catch (error) {
      setState({ isSent: false, error })
    }
    await refresh('GET /v1/admin/backends', 'GET /v1/admin/backends/:name', 'GET /v1/admin/tokens')
  }
  const flags = asked.map((one) => ` --scope ${one}`).join('')
  return (
    <div className="grid gap-2">
      <form onSubmit={run} className="flex flex-wrap items-center gap-2">
        <Button type="submit" look="primary" refused={refused} disabled={state.isSent}>
          {state.isSent ? 'Trying…' : 'Try it'}
        </Button>
        <Input
          aria-label="Scopes to try"
          placeholder="scopes; empty: an example"
          className="w-auto! min-w-52 grow font-mono text-xs!"
          list={id}
          value={scopes}
          onChange={({ target }) => setScopes(target.value)}
        />
        <datalist id={id}>
          {(allowed ?? examples).map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
        <CopyAs
          command={`mayfly backend try ${name}${flags}`}
          request={`POST /v1/admin/backends/${name}/try`}
          body={body}
        />
      </form>
      <p className="text-xs text-muted">
        Issues a credential for a minute, or the shortest time of its kind, gives it to nobody, and ends it.
      </p>
      <div role="status">{state.tried !== undefined && <Tried tried={state.tried} />}</div>
      {state.error !== undefined && <ErrorNote error={state.error} />}
    </div>
  )
}
