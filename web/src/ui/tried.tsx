import { Link } from 'wouter'
import type { TriedBackend } from '../../../src/client/wire.ts'
import { paths } from '../paths.ts'
import { visible } from './hostile.ts'
import { Warning } from './notes.tsx'
import { reasonText } from './reasons.ts'
import { Scopes } from './scopes.tsx'
import { Mark } from './status.tsx'
import { Hostile } from './text.tsx'

const STEPS: Readonly<Record<string, string>> = {
  check: 'Logs in, and asks for what issuing needs',
  issue: 'Issues a credential',
  revoke: 'Ends it at the upstream',
}

/** What a trial of a backend has done, step by step. */
export function Tried({ tried }: { readonly tried: TriedBackend }) {
  const { steps, note, ended, warnings = [] } = tried
  const failed = steps.find(({ error }) => error !== undefined)
  return (
    <div className="grid gap-2 rounded-sm border border-line px-3 py-2">
      <ol className="grid gap-1">
        {steps.map(({ name, ms, error, detail }) => (
          <li key={name} className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4">
            <span
              className={`flex items-baseline gap-1.5 ${error === undefined ? '' : 'font-semibold text-bad'}`}
            >
              <Mark look={error === undefined ? 'ok' : 'bad'} />
              {STEPS[name] ?? name}
              <span className="sr-only">{error === undefined ? 'worked' : 'failed'}</span>
            </span>
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
          <>
            <Link className="text-accent underline" href={paths.credential(tried.id)}>
              The credential
            </Link>
            <Link className="text-accent underline" href={paths.activity({ credential: tried.id })}>
              Its story
            </Link>
          </>
        )}
      </div>
    </div>
  )
}
