import { Status } from '../../ui/status.tsx'
import { type Run, wordOf } from './run.ts'

/** Whether it lives, or why it does not. */
export function RunStatus({ run }: { readonly run: Pick<Run, 'state' | 'reason'> }) {
  return run.state === 'running' ? (
    <Status look="ok">running</Status>
  ) : (
    <Status look="off">{run.reason === null ? 'ended' : wordOf(run.reason)}</Status>
  )
}
