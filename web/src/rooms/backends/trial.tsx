import { type FormEvent, useId, useState } from 'react'
import { Link } from 'wouter'
import type { TriedBackend } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Input, linesOf } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Warning } from '../../ui/notes.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { Scopes } from '../../ui/scopes.tsx'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'

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
          placeholder="scopes; empty: an example of the kind"
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

const STEPS: Readonly<Record<string, string>> = {
  check: 'Logs in, and asks for what issuing needs',
  issue: 'Issues a credential',
  revoke: 'Ends it at the upstream',
}

function Tried({ tried }: { readonly tried: TriedBackend }) {
  const { steps, note, ended, warnings = [] } = tried
  const failed = steps.find(({ error }) => error !== undefined)
  return (
    <div className="grid gap-2 rounded-sm border border-line px-3 py-2">
      <ol className="grid gap-1">
        {steps.map(({ name, ms, error, detail }) => (
          <li key={name} className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4">
            <Status look={error === undefined ? 'ok' : 'bad'}>{STEPS[name] ?? name}</Status>
            <span className="text-muted">{ms.toLocaleString('en')} ms</span>
            {error !== undefined && (
              <div className="col-span-2 pl-4">
                <p>
                  {reasonText(error)} <code className="text-xs text-muted">{error}</code>
                </p>
                {detail !== undefined && (
                  <p className="font-medium">
                    <Hostile text={detail} />
                  </p>
                )}
              </div>
            )}
          </li>
        ))}
      </ol>
      <p className={failed === undefined ? 'font-semibold' : 'font-semibold text-bad'}>
        {failed === undefined
          ? ended
            ? 'It works from end to end, and nothing is left.'
            : 'It issues; the credential ends by itself.'
          : 'It does not work.'}
      </p>
      {note !== undefined && <Warning>{visible(note)}</Warning>}
      {warnings.map((one) => (
        <Warning key={one}>{visible(one)}</Warning>
      ))}
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1 text-xs">
        <span className="inline-flex items-baseline gap-2">
          <span className="text-muted">Tried</span> <Scopes scopes={tried.scopes} />
        </span>
        {tried.id !== undefined && (
          <Link className="text-accent underline" href={paths.credential(tried.id)}>
            The credential
          </Link>
        )}
      </div>
    </div>
  )
}
