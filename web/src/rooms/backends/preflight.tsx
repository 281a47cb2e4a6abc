import { MayflyError } from '../../../../src/client/errors.ts'
import { ErrorNote } from '../../ui/notes.tsx'
import { reasonText } from '../../ui/reasons.ts'
import { type Look, Status } from '../../ui/status.tsx'
import { failedAt, STEPS } from './preflight-steps.ts'

interface Props {
  readonly isSent: boolean
  /** Whether the upstream is asked. */
  readonly isChecked: boolean
  readonly error: unknown
}

/** What the server does with the form, step by step, up to the one that failed. */
export function Preflight({ isSent, isChecked, error }: Props) {
  const failed = failedAt(error)
  const isRun = isSent && isChecked
  return (
    <div role="status" className="grid gap-3">
      {(isRun || failed !== undefined) && (
        <ol className="grid gap-1 rounded-sm border border-line px-3 py-2">
          {STEPS.map((step, n) => (
            <li key={step}>
              <Status look={lookOf(n, failed)}>{step}</Status>
            </li>
          ))}
        </ol>
      )}
      {error !== undefined && (
        <div className="grid gap-2">
          {error instanceof MayflyError && error.reason !== undefined && (
            <p className="font-semibold text-bad">{reasonText(error.reason)}</p>
          )}
          <ErrorNote error={error} />
          <p className="text-xs text-muted">
            What you typed is still here.
            {isChecked && ' To store it untried, take the tick off above.'}
          </p>
        </div>
      )}
    </div>
  )
}

function lookOf(step: number, failed: number | undefined): Look {
  if (failed === undefined) return 'wait'
  return step < failed ? 'ok' : step === failed ? 'bad' : 'off'
}
