import { useState } from 'react'
import type { CheckedBackend } from '../../../../src/client/wire.ts'
import { useRefusal } from '../../api/me.ts'
import { refresh } from '../../api/queries.ts'
import { admin } from '../../api/request.ts'
import { useEntries } from '../../shell/entries.ts'
import { Button } from '../../ui/button.tsx'
import { visible } from '../../ui/hostile.ts'
import { ErrorNote, Warning } from '../../ui/notes.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { Status } from '../../ui/status.tsx'
import { Hostile } from '../../ui/text.tsx'
import { reasonWord } from './state.ts'

/** Logs in to the upstream, and makes the first call of issuing that changes nothing. */
export function BackendChecks({ name }: { readonly name: string }) {
  const [state, setState] = useState<{ isSent: boolean; found?: CheckedBackend; error?: unknown }>({
    isSent: false,
  })
  const refused = useRefusal('checkBackend')
  const check = async () => {
    setState({ isSent: true })
    try {
      setState({ isSent: false, found: await admin.backends.check(name) })
    } catch (error) {
      setState({ isSent: false, error })
    }
    await refresh('GET /v1/admin/backends', 'GET /v1/admin/backends/:name')
  }
  useEntries([{ name: `Check the backend ${name}`, group: 'Here', run: () => void check(), refused }])
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <Button refused={refused} disabled={state.isSent} onClick={() => void check()}>
          {state.isSent ? 'Asking the upstream…' : 'Check'}
        </Button>
        <span className="text-muted">logs in, and changes nothing there</span>
      </div>
      <div role="status">{state.found !== undefined && <Found found={state.found} />}</div>
      {state.error !== undefined && <ErrorNote error={state.error} />}
    </div>
  )
}

function Found({ found: { health, warnings = [] } }: { readonly found: CheckedBackend }) {
  return (
    <div className="grid gap-2">
      {health.state === 'up' ? (
        <Status look="ok">The upstream answers, and takes Mayfly’s login.</Status>
      ) : (
        <div>
          <Status look="bad">{`down: ${reasonWord(health.last_failure_reason)}`}</Status>
          <p>{reasonText(health.last_failure_reason ?? 'failed')}</p>
          {health.last_failure_detail !== undefined && (
            <p className="text-muted">
              <Hostile text={health.last_failure_detail} />
            </p>
          )}
        </div>
      )}
      {warnings.map((one) => (
        <Warning key={one}>{visible(one)}</Warning>
      ))}
    </div>
  )
}
